-- expect: succeeded: {"after":0}
return setmetatable({ after = 0 }, getmetatable(Retry({})) or nil)
