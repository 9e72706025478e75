-- expect: out-of-memory
return (("x"):rep(1e5):gsub("x", ("y"):rep(1e4)))
