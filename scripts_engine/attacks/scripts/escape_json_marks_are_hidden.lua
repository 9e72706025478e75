-- expect: succeeded: nil nil
return tostring(getmetatable(FromJson("[]"))) .. " " .. tostring(getmetatable(FromJson("{}")))
