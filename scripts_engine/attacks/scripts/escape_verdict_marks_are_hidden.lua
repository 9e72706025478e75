-- expect: succeeded: false false
return tostring(getmetatable(Retry({}))) .. " " .. tostring(getmetatable(Fail({})))
