-- expect: timed-out
-- limits: wall=0.3
while true do
  pcall(function() return ("x"):rep(1e8) end)
end
