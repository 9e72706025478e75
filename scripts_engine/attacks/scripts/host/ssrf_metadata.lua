-- expect: succeeded: refused
local urls = {
  "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/latest/meta-data/",
  "http://2852039166/", "http://0xa9fea9fe/", "http://[::ffff:169.254.169.254]/",
  "http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::]/", "http://169.254.170.2/v2/credentials",
  "http://100.100.100.200/latest/meta-data/", "http://192.0.0.192/opc/v2/instance/",
}
for _, url in ipairs(urls) do
  if pcall(http.get, url) then return "reached " .. url end
end
return "refused"
