-- expect: timed-out
-- limits: wall=0.3
return table.concat(setmetatable({}, {
  __len = function() return 1e9 end,
  __index = function() return "" end,
}))
