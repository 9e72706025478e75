-- expect: failed: attempt to index
getmetatable("").__index = function() end
