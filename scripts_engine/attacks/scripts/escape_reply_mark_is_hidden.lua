-- expect: succeeded: false
return tostring(getmetatable(Reply({})))
