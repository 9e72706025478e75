-- expect: succeeded: attempt to index null; demo;false
xpcall(error, function(problem) leaked = problem return problem end, "leaked")
pcall(function() return null.leaked end)
pcall(error, setmetatable({}, { __tostring = function() return "leaked" end, __name = "leaked" }))
function demo()
  error("leaked")
end
pcall(demo)
pcall(string.rep)
pcall(setmetatable, 1, 2)
-- the next run
local _, message = pcall(function() return null.field end)
local _, other = pcall(error, "demo", 0)
return message:gsub("^.-: ", "") .. "; " .. other .. ";" .. tostring(leaked ~= nil)
