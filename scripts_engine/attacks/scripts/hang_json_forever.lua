-- expect: timed-out
-- limits: wall=0.3
local text = "[" .. ("1,"):rep(1e5) .. "1]"
while true do FromJson(text) end
