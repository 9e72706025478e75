-- expect: failed: 1 to 256 bytes
store.set(("k"):rep(257), 1)
