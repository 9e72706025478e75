-- expect: succeeded: {"after":0}
local verdict = Retry({ after = 0 })
pcall(setmetatable, verdict, nil)
return Reply({ status = 299, body = verdict })
