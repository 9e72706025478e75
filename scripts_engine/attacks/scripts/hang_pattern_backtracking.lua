-- expect: timed-out
-- limits: wall=0.3
local text = ("a"):rep(40)
return text:find(("a?"):rep(40) .. text .. "b")
