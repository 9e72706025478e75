-- expect: succeeded: refused
for _, url in ipairs{ "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:6379/info", "unix:///var/run/docker.sock", "data:text/plain,x", "jar:http://x!/",
    "http+unix://%2Fvar%2Frun/", "//127.0.0.1/", "http:/127.0.0.1/", "http:127.0.0.1", "\0http://x/" } do
  if pcall(http.get, url) then return "reached " .. url end
end
return "refused"
