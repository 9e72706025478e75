-- expect: succeeded: unharmed
local hostile = { 0 / 0, math.huge, -1, {}, "\0", ("x"):rep(1e5), function() end, coroutine.create(print) }
for _, a in ipairs(hostile) do
  pcall(http.request, a)
  pcall(http.get, a)
  pcall(http.post, a, a)
  for _, field in ipairs{ "method", "url", "headers", "body", "json", "timeout" } do
    pcall(http.request, { url = "http://127.0.0.1/", [field] = a })
  end
end
return "unharmed"
