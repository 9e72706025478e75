-- expect: succeeded: false
return tostring(getmetatable(""))
