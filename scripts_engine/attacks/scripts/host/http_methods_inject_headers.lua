-- expect: succeeded: refused
local hostile = { { ["X-A"] = "1\r\nHost: internal" }, { Host = "internal" }, { ["Transfer-Encoding"] = "chunked" } }
for _, method in ipairs{ "get", "head", "delete", "post", "put", "patch" } do
  local has_body = method:sub(1, 1) == "p"
  for i, headers in ipairs(hostile) do
    local url, smuggled = "http://192.0.2.1/", "GET / HTTP/1.1\r\nHost: internal\r\n\r\n"
    local ok, problem = pcall(http[method], url, has_body and smuggled or headers, headers)
    if ok or not (problem:find("may not set", 1, true) or problem:find("not allowed", 1, true)) then
      return method .. " sent " .. i
    end
  end
end
return "refused"
