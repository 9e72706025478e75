-- expect: timed-out
-- limits: wall=0.3
while true do print("flood") end
