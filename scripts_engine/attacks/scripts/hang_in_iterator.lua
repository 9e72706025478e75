-- expect: timed-out
-- limits: wall=0.3
for _ in function() return 1 end do end
