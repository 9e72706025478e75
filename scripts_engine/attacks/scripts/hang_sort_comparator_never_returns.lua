-- expect: timed-out
-- limits: wall=0.3
table.sort({ 2, 1 }, function()
  while true do end
end)
