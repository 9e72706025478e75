-- expect: timed-out
-- limits: wall=0.3
return (("a"):rep(30000):gsub(".-.-.-b", ""))
