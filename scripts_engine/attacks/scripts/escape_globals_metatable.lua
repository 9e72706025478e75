-- expect: succeeded: done
setmetatable(_G, {
  __index = function() while true do end end,
  __newindex = function() while true do end end,
  __metatable = "mine",
})
return "done"
