-- expect: failed: invalid conversion
return string.format("%99999999d", 1)
