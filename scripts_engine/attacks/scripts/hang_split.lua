-- expect: timed-out
-- limits: wall=0.3
local text, separator = ("a"):rep(1e7), ("a"):rep(5e6) .. "b"
return #text:split(separator)
