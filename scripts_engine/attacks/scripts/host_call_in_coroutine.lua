-- expect: failed: store is not available here
return coroutine.wrap(function() return store.get("a") end)()
