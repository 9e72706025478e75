-- expect: timed-out
-- limits: wall=0.3
table.move({}, 1, 1e15, 2)
