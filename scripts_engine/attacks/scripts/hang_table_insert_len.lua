-- expect: timed-out
-- limits: wall=0.3
table.insert(setmetatable({}, { __len = function() return 1e15 end }), 1, "x")
