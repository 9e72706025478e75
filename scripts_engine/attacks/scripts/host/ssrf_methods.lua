-- expect: succeeded: refused
local urls = {
  "http://127.0.0.1:22/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest/meta-data/",
  "file:///etc/passwd", "http://example.com\r\nHost: 127.0.0.1/",
}
for _, method in ipairs{ "head", "put", "patch", "delete" } do
  for _, url in ipairs(urls) do
    local ok, problem = pcall(http[method], url)
    if ok then return method .. " reached " .. url end
    if not problem:find("http." .. method .. ": ", 1, true) then return problem end
    if problem:find("calls in a run", 1, true) then return "not tried: " .. url end
  end
end
return "refused"
