-- expect: succeeded: refused
for _, url in ipairs{ "http://example.com@127.0.0.1/", "http://127.0.0.1#@example.com/",
    "http://127.0.0.1\\@example.com/", "http://example.com\r\nHost: 127.0.0.1/", "http://127.0.0.1:80:80/",
    "http://[127.0.0.1]/", "http://127.0.0.1 /", "http://\t127.0.0.1/", "http://①②⑦.⓪.⓪.①/" } do
  if pcall(http.get, url) then return "reached " .. url end
end
return "refused"
