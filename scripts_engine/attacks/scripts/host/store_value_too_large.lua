-- expect: failed: 64 KiB
store.set("k", ("x"):rep(64 * 1024))
