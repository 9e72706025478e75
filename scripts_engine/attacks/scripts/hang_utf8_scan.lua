-- expect: timed-out
-- limits: wall=0.3
local text = ("é"):rep(1e6)
while true do utf8.len(text) end
