-- expect: failed: bad argument
setmetatable("", {})
