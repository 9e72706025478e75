-- expect: succeeded: refused
local urls = {
  "http://127.0.0.1:22/", "http://localhost/", "http://127.1/", "http://2130706433/",
  "http://0x7f.1/", "http://0177.0.0.1/", "http://0/", "http://0.0.0.0/", "http://[::1]/",
  "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://127.0.0.1./",
  "http://localhost./", "http://LOCALHOST/", "https://127.0.0.1/", "http://127.0.0.1%2f/",
}
for i = 1, 17 do
  local ok, answer = pcall(http.get, urls[i])
  if ok then return "reached " .. urls[i] end
end
return "refused"
