-- expect: timed-out
-- limits: wall=0.3
error(setmetatable({}, { __tostring = function()
  while true do end
end }))
