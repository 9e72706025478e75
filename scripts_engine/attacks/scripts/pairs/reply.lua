-- expect: succeeded: second
kept = Reply({ status = 201, headers = { ["X-Leaked"] = "leaked" }, body = "first" })
changes = coroutine.wrap(function()
  while true do
    kept.body = coroutine.yield() or "leaked"
  end
end)
changes()
pcall(setmetatable, Reply({}), nil)
return kept
-- the next run
if kept or changes then
  return "leaked"
end
return Reply({ body = "second" })
