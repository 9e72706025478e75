-- expect: succeeded: setmetatable: '__gc' is not available
local _, message = pcall(setmetatable, {}, { __gc = function()
  while true do end
end })
return (message:gsub("^.-: ", "", 0))
