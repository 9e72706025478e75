-- expect: succeeded: unharmed
local hostile = { 0 / 0, math.huge, -1, {}, "\0", ("x"):rep(1e5), function() end, coroutine.create(print) }
for _, a in ipairs(hostile) do
  pcall(http.request, a)
  pcall(http.get, a)
  for _, name in ipairs{ "head", "delete", "post", "put", "patch" } do
    pcall(http[name], a, a, a)
    pcall(http[name], "http://127.0.0.1/", a, a)
  end
  for _, field in ipairs{ "method", "url", "headers", "body", "json", "timeout" } do
    pcall(http.request, { url = "http://127.0.0.1/", [field] = a })
  end
end
return "unharmed"
