-- expect: failed: over 8388608
return secrets.get(("x"):rep(9e6))
