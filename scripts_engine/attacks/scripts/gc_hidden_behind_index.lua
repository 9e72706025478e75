-- expect: succeeded: done
local metatable = setmetatable({}, { __index = { __gc = function()
  while true do end
end } })
setmetatable({}, metatable)
return "done"
