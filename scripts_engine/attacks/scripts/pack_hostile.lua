-- expect: failed: out of limits
return string.unpack("s17", "x")
