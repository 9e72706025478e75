-- expect: timed-out
-- limits: wall=0.3
local co = coroutine.wrap(function()
  while true do coroutine.yield() end
end)
while true do co() end
