-- expect: succeeded: 100000
return tostring(#FromJson('"' .. ("\\n"):rep(1e5) .. '"'))
