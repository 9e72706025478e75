-- expect: succeeded: done
local metatable = {}
setmetatable({}, metatable)
metatable.__gc = function()
  while true do end
end
return "done"
