-- expect: failed: '%p' is not available
return ("%%%p"):format({})
