-- expect: failed: unterminated string
return FromJson('"' .. ("\\"):rep(1e6))
