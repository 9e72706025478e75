-- expect: failed: integer out of the 64-bit range
return FromJson(("1"):rep(1e6))
