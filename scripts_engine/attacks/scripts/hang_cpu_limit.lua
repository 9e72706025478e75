-- expect: timed-out
-- limits: wall=10 cpu=1
while true do end
