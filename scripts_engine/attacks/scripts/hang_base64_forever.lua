-- expect: timed-out
-- limits: wall=0.3
local text = ("x"):rep(1e6)
while true do base64.encode(text) end
