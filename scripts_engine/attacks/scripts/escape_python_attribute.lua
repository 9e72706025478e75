-- expect: failed: attempt to index a function value
return crypto.sha256.__globals__
