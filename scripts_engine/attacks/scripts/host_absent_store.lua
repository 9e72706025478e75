-- expect: failed: store is not available here
store.set("a", 1)
