-- expect: failed: attempt to yield from outside a coroutine
return crypto.sha256(coroutine.yield("x"))
