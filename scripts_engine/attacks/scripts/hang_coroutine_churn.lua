-- expect: timed-out
-- limits: wall=0.3
while true do
  coroutine.wrap(function() coroutine.yield() end)()
end
