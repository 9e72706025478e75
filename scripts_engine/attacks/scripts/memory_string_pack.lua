-- expect: out-of-memory
return string.pack("s4s4s4", ("x"):rep(2e7), ("y"):rep(2e7), ("z"):rep(2e7))
