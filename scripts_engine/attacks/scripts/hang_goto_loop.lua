-- expect: timed-out
-- limits: wall=0.3
::again:: goto again
