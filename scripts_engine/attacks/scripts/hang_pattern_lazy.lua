-- expect: timed-out
-- limits: wall=0.3
return ("x"):rep(20000):find(".-.-.-.-.-.-b")
