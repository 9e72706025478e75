-- expect: succeeded: second
kept = Retry({ after = 5, reason = "leaked" })
pcall(setmetatable, kept, nil)
pcall(setmetatable, Fail({}), nil)
Retry, Fail = Fail, Retry
return "first"
-- the next run
if kept then
  return "leaked"
end
return pcall(Fail, { after = 5 }) and "leaked" or "second"
