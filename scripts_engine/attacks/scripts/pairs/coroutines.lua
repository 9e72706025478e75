-- expect: succeeded: fresh
kept = coroutine.wrap(function()
  local guard <close> = setmetatable({}, { __close = function() leaked = "leaked" end })
  while true do
    leaked = coroutine.yield()
  end
end)
kept()
called = coroutine.create(ToJson)
coroutine.resume(called, setmetatable({}, { __index = kept }), {})
printing = coroutine.wrap(function()
  print(setmetatable({}, { __tostring = function() coroutine.yield() return "leaked" end }))
end)
printing()
-- the next run
return leaked or kept or called or printing or "fresh"
