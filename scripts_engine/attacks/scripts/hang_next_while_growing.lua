-- expect: timed-out
-- limits: wall=0.3
local t = { 1 }
while true do
  for key in pairs(t) do t[key] = 1 end
end
