-- expect: timed-out
-- limits: wall=0.3
for _ in pairs(setmetatable({}, { __pairs = function()
  while true do end
end })) do end
