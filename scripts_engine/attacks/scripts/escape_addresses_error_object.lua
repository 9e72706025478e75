-- expect: failed: an error object
error(setmetatable({ print }, { __tostring = function() error("no") end }))
