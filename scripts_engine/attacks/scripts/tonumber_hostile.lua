-- expect: succeeded: nil
return tostring(tonumber(("9"):rep(1e6), 36) and nil)
