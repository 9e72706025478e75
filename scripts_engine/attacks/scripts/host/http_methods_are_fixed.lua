-- expect: succeeded: refused
-- What names another method is no header, body or URL.
local tries = {
  { http.get, "http://192.0.2.1/", { method = {} } }, { http.head, { method = "POST", url = "http://192.0.2.1/" } },
  { http.delete, "http://192.0.2.1/", "body" }, { http.put, "http://192.0.2.1/", { method = "GET" } },
  { http.patch, "http://192.0.2.1/", "body", "method" }, { http.post, "CONNECT http://192.0.2.1/" },
  { http.request, { url = "http://192.0.2.1/", method = "GET\r\nX: 1" } },
}
for i, try in ipairs(tries) do
  local ok, problem = pcall(table.unpack(try))
  if ok or problem:find("not reachable", 1, true) then return "sent " .. i end
end
return "refused"
