-- expect: timed-out
-- limits: wall=0.3
return (""):rep(1e15)
