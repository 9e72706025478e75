-- expect: succeeded: done
left = coroutine.wrap(function()
  local guard <close> = setmetatable({}, { __close = function() while true do end end })
  coroutine.yield()
end)
left()
return "done"
