-- expect: failed: a thread has no JSON form
return coroutine.create(print)
