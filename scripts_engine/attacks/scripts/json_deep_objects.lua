-- expect: failed: nested deeper than 128 levels
return FromJson(('{"a":'):rep(1e5))
