-- expect: succeeded: refused
local bad = {"http://a b/", "http://h\\@evil/", "http://h\r\nx/", "http://h\0/", "http://é/", "http://h:1:2/", "http://u@v@h/", "http://[::1", "http://::1]/", "http://[::1]evil/", "http://h:-1/", "http://h:65536/", "http://h:1e3/", "%", "http://h/%0g", "1:x", ":x", "a#b#c", "x[", ("a "):rep(1e6)}
for i = 1, #bad do if pcall(url.parse, bad[i]) then return "accepted " .. i end end
assert(not pcall(url.parse) and not pcall(url.parse, {}) and not pcall(url.parse, 5))
for _, piece in ipairs{"a", ":", "/", "?", "@", "%00", "a:", "a.", "//a@", "[", "]", "1"} do
  pcall(url.parse, piece:rep(1e5))  pcall(url.parse, "http://" .. piece:rep(1e5))  pcall(url.parse, "http://[" .. piece:rep(1e5) .. "]:1")
end
return "refused"
