-- expect: timed-out
-- limits: wall=0.3
return (("x"):gsub("x", function()
  while true do end
end))
