-- expect: failed: resulting string too large
return ("x"):rep(1e18)
