-- expect: succeeded: refused
for _, host in ipairs{ "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1",
    "192.0.2.1", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[fc00::1]", "[fec0::1]", "[ff02::1]" } do
  if pcall(http.get, "http://" .. host .. "/") then return "reached " .. host end
end
return "refused"
