-- expect: timed-out
-- limits: wall=0.3
coroutine.wrap(function()
  while true do end
end)()
