-- expect: succeeded: refused
local tries = {
  { method = "GET", headers = { ["X-A"] = "1\r\nHost: internal" } },
  { method = "GET", headers = { ["X-A\r\nHost"] = "internal" } },
  { method = "GET", headers = { Host = "internal" } },
  { method = "GET", headers = { ["Transfer-Encoding"] = "chunked" } },
  { method = "GET / HTTP/1.1\r\nHost: internal\r\n\r\nGET" },
  { method = "CONNECT" }, { method = "TRACE" }, { method = "" },
}
for i, try in ipairs(tries) do
  try.url = "http://192.0.2.1/"
  if pcall(http.request, try) then return "sent " .. i end
end
return "refused"
