-- expect: failed: a function has no JSON form (at callback)
return { callback = print }
