-- attack: http_calls_are_counted
-- expect: succeeded: more than 20 calls in a run
local problem
for _ = 1, 25 do
  _, problem = pcall(http.get, "http://127.0.0.1/")
end
return problem

-- attack: http_hostile_arguments
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

-- attack: http_methods_are_fixed
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

-- attack: http_methods_inject_headers
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

-- attack: http_methods_share_the_quota
-- expect: succeeded: 20 calls
local names, counted, problem = { "get", "head", "post", "put", "patch", "delete" }, 0, nil
for i = 1, 40 do
  local _, e = pcall(http[names[i % 6 + 1]], "http://127.0.0.1/")
  if not e:find("more than 20 calls in a run", 1, true) then counted = counted + 1 end
end
return counted .. " calls"

-- attack: ssrf_header_injection
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

-- attack: ssrf_loopback
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

-- attack: ssrf_metadata
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

-- attack: ssrf_methods
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

-- attack: ssrf_private
-- expect: succeeded: refused
for _, host in ipairs{ "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1",
    "192.0.2.1", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[fc00::1]", "[fec0::1]", "[ff02::1]" } do
  if pcall(http.get, "http://" .. host .. "/") then return "reached " .. host end
end
return "refused"

-- attack: ssrf_schemes
-- expect: succeeded: refused
for _, url in ipairs{ "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:6379/info", "unix:///var/run/docker.sock", "data:text/plain,x", "jar:http://x!/",
    "http+unix://%2Fvar%2Frun/", "//127.0.0.1/", "http:/127.0.0.1/", "http:127.0.0.1", "\0http://x/" } do
  if pcall(http.get, url) then return "reached " .. url end
end
return "refused"

-- attack: ssrf_url_confusion
-- expect: succeeded: refused
for _, url in ipairs{ "http://example.com@127.0.0.1/", "http://127.0.0.1#@example.com/",
    "http://127.0.0.1\\@example.com/", "http://example.com\r\nHost: 127.0.0.1/", "http://127.0.0.1:80:80/",
    "http://[127.0.0.1]/", "http://127.0.0.1 /", "http://\t127.0.0.1/", "http://①②⑦.⓪.⓪.①/" } do
  if pcall(http.get, url) then return "reached " .. url end
end
return "refused"

-- attack: queue_hostile_arguments
-- expect: succeeded: unharmed
local hostile = { 0 / 0, math.huge, -1, 1e300, {}, "\0", "\255", ("x"):rep(1e5), function() end, true, "'; --" }
-- What is taken waits for so long that it never runs.
local month = 2592000
local own = params.get("script_id")
for _, a in ipairs(hostile) do
  for _, b in ipairs(hostile) do
    pcall(queue.push, a, b)
    pcall(queue.push, b, a, b)
    pcall(queue.push, a, "", { key = b, attempts = 2.5 })
  end
  if pcall(queue.push, own, "", { delay = a }) or pcall(queue.push, own, "", { attempts = a }) then
    return "taken: " .. tostring(a)
  end
  pcall(queue.push, own, a, { delay = month })
  pcall(queue.push, own, "", { delay = month, key = a })
end
local deep = {}
deep[1] = deep
local forged = setmetatable({ delay = month }, { __index = function() return own end, __tostring = error })
pcall(queue.push, own, deep, forged)
pcall(queue.push, own, forged, forged)
pcall(queue.push, forged, "")
local nobody = "00000000-0000-0000-0000-000000000000"
return not pcall(queue.push, nobody, "") and not pcall(queue.push) and "unharmed"

-- attack: queue_of_others
-- expect: failed: queue.push: there is no script with this id or name
queue.push("honest", "")

-- attack: queue_payload_too_large
-- expect: succeeded: over 256 KiB
local own, large = params.get("script_id"), ("x"):rep(256 * 1024 + 1)
local _, of_string = pcall(queue.push, own, large)
local _, of_json = pcall(queue.push, own, { large })
return of_string == of_json and of_string

-- attack: queue_pushes_are_counted
-- expect: failed: queue.push: more than 20 pushes in a run
for _ = 1, 21 do
  queue.push(params.get("script_id"), "", { delay = 2592000 })
end

-- attack: secrets_of_others
-- expect: succeeded: nothing
for _, name in ipairs{ "SECRET_KEY", "MOONHOOK_PEPPERS", "DATABASE_URL", "EMAIL_URL", "*", "%", "", "../x",
    "HONEST_KEY", "HONEST_KEY\0", "honest_key", "' OR 1=1 --" } do
  if secrets.get(name) then return "found " .. name end
end
return "nothing"

-- attack: store_flood
-- expect: succeeded: bounded
-- limits: wall=20
local count = 0
local ok, problem = pcall(function()
  for i = 1, 1e9 do
    store.set("flood" .. i, i, 60)
    count = count + 1
  end
end)
return not ok and count <= 1000 and "bounded" or "endless"

-- attack: store_hostile_arguments
-- expect: succeeded: unharmed
local hostile = { 0 / 0, math.huge, -1, {}, "\0", "\255", ("x"):rep(1e5), function() end, "'; DROP TABLE x; --" }
for _, a in ipairs(hostile) do
  for _, b in ipairs(hostile) do
    pcall(store.get, a)
    pcall(store.set, a, b, b)
    pcall(store.delete, a)
    pcall(store.increment, a, b)
    pcall(store.set_if_absent, a, b, b)
    pcall(store.set_if_absent, a, b, { ttl = b })
    pcall(store.list, a, b)
    pcall(secrets.get, a)
  end
end
return "unharmed"

-- attack: store_key_too_long
-- expect: failed: 1 to 256 bytes
store.set(("k"):rep(257), 1)

-- attack: store_list_is_bounded
-- expect: succeeded: bounded
for i = 1, 20 do store.set(("k"):rep(250) .. i, 1, 60) end
for _, limit in ipairs{ 0, -1, 1001, 1e9, 1.5, 0 / 0, math.huge, math.maxinteger, math.mininteger } do
  if pcall(store.list, "", limit) then return "listed " .. limit end
end
return #store.list("kkk", 1000) <= 1000 and "bounded" or "endless"

-- attack: store_list_of_others
-- expect: succeeded: nothing
for _, prefix in ipairs{ "", "h", "honest", "%", "_", "*", "hones_", "h%", "' OR 1=1 --", "\0", "\255" } do
  for _, key in ipairs(store.list(prefix, 1000)) do
    if key == "honest" then return "found through " .. prefix end
  end
end
return "nothing"

-- attack: store_of_others
-- expect: succeeded: nothing
return store.get("honest") == nil and "nothing" or "found"

-- attack: store_set_if_absent_of_others
-- expect: succeeded: own
-- The honest tenant has this key: whether it does must not show.
local first, second = store.set_if_absent("honest_once", "mine"), store.set_if_absent("honest_once", "mine")
store.delete("honest_once")
return first and not second and "own" or "shared"

-- attack: store_value_too_large
-- expect: failed: 64 KiB
store.set("k", ("x"):rep(64 * 1024))
