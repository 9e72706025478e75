-- expect: failed: nested deeper than 128 levels at line 1
return FromJson(("["):rep(1e6))
