-- expect: timed-out
-- limits: wall=0.3
while true do
  xpcall(error, function() error("again") end)
end
