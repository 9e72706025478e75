-- expect: out-of-memory
return ("x"):rep(1e9)
