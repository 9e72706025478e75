-- expect: timed-out
-- limits: wall=0.3
while true do
  pcall(function()
    while true do end
  end)
end
