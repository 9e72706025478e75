-- expect: failed: time.format
return time.format(1e300)
