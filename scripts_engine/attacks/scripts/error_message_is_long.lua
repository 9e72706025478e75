-- expect: failed: xxxx
error(("x"):rep(1e6))
