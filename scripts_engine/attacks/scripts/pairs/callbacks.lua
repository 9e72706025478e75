-- expect: succeeded: 1,2,3 b
local function failing()
  error({ leaked = "leaked" })
end
local function yielding()
  coroutine.yield("leaked")
end
for _, callback in ipairs({ failing, yielding }) do
  pcall(table.sort, { 3, 1, 2 }, callback)
  pcall(string.gsub, "abc", ".", callback)
  coroutine.wrap(function() pcall(table.sort, { 3, 1, 2 }, callback) end)()
  coroutine.wrap(function() xpcall(callback, yielding) end)()
  pcall(inspect, setmetatable({}, { __index = callback, __name = "leaked" }))
  pcall(log.info, setmetatable({}, { __tostring = callback }))
  pcall(tostring, setmetatable({}, { __tostring = callback }))
end
-- the next run
local sorted = { 3, 1, 2 }
table.sort(sorted)
return table.concat(sorted, ",") .. " " .. ("a"):gsub(".", { a = "b" })
