-- expect: timed-out
-- limits: wall=0.3
local guard <close> = setmetatable({}, { __close = function()
  while true do end
end })
return "done"
