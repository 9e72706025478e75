-- expect: timed-out
-- limits: wall=0.3
log.info(setmetatable({}, {__tostring = function() while true do end end}))
