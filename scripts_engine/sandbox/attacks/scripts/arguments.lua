-- attack: body_hostile
-- expect: succeeded: refused
local function spin() while true do end end
assert(next(params.form()) == nil and next(params.form(setmetatable({}, {__index = spin, __pairs = spin}))) == nil)
return not pcall(params.json) and not pcall(params.form, 5) and not pcall(params.form, {multi = 1}) and "refused"

-- attack: build_query_hostile
-- expect: succeeded: refused
local cycle = {}
cycle.a = {cycle}
local function spin() while true do end end
local lazy = setmetatable({}, {__index = spin, __pairs = spin, __len = spin})
assert(url.build_query(lazy) == "" and url.build_query{a = lazy} == "")
assert(url.build_query{["\0\255&="] = "\0\r\n"} == "%00%FF%26%3D=%00%0D%0A")
local bad = {cycle, {1}, {a = print}, {a = 0/0}, {a = {1/0}}, {a = null}, {a = {{}}}, {a = {1, nil, 3}}, {a = {x = 1}}, {[true] = "x"}, "a", 5}
for i = 1, #bad do if pcall(url.build_query, bad[i]) then return "accepted " .. i end end
return not pcall(url.build_query) and "refused"

-- attack: close_hostile
-- expect: failed: boom in close
local guard <close> = setmetatable({}, { __close = function() error("boom in close") end })
error("first")

-- attack: crypto_hostile
-- expect: succeeded: refused
for _, name in ipairs{"md5", "sha1", "sha512", "hmac_sha512"} do
  for _, value in ipairs{{}, 5, true, print, null} do
    if pcall(crypto[name], value, value) or pcall(crypto[name]) then return "accepted " .. name end
  end
end
return #crypto.md5(("\0\255"):rep(1e6)) + #crypto.hmac_sha512("", "") == 160 and not pcall(crypto.hmac_sha512, "k") and "refused"

-- attack: date_hostile
-- expect: failed: invalid conversion specifier
return os.date("%Ez")

-- attack: format_wide
-- expect: failed: invalid conversion
return string.format("%99999999d", 1)

-- attack: inspect_hostile
-- expect: succeeded: inspected
local function boom() error("called") end
local function spin() while true do end end
local names = {"__index", "__len", "__pairs", "__eq", "__lt", "__tostring", "__name", "__metatable", "__call", "__close"}
local t = {}
for i, name in ipairs(names) do
  t[i] = setmetatable({}, {[name] = boom})
  t[name] = setmetatable({x = 1}, {[name] = spin})
end
t.t, t[t], t[print], t[coroutine.create(print)] = t, t, print, coroutine.create(print)
t[1/0], t[-1/0], t[0.5], t[math.mininteger], t[math.maxinteger] = 0/0, 1/0, -0.0, "\0\255", ("\128"):rep(1e6)
t[("\255"):rep(1e6)], t[""], t["é"], t["\0"] = true, false, null, "\237\160\128"
local text = inspect(t)
return not text:find("0x%x%x%x%x") and #text <= 65540 and "inspected"

-- attack: inspect_large
-- expect: succeeded: bounded
local deep, wide, keys = {}, {}, {}
for _ = 1, 1e5 do deep = {deep, x = deep} end
for i = 1, 3e5 do wide[i] = wide; keys["k" .. i % 1e5] = keys end
local shared = {("x"):rep(1e7)}
for _ = 1, 100 do shared = {shared, shared, shared, [shared] = shared} end
local total = #inspect(deep) + #inspect(wide) + #inspect(keys) + #inspect(shared) + #inspect(("\n"):rep(1e7))
return total <= 5 * 65540 and "bounded"

-- attack: pack_hostile
-- expect: failed: out of limits
return string.unpack("s17", "x")

-- attack: parse_query_hostile
-- expect: succeeded: parsed
for _, piece in ipairs{"&", "=", "a&", "a=&", "%&", "%0&", "+", "\0\255=&"} do
  url.parse_query(piece:rep(2e5))  url.parse_query(piece:rep(2e5), {multi = true})
end
local function spin() while true do end end
assert(#url.parse_query("", setmetatable({}, {__index = spin, __pairs = spin})) == 0)
assert(not pcall(url.parse_query, "", {multi = 1}) and not pcall(url.parse_query, "", {x = true}) and not pcall(url.parse_query, "", 5))
return "parsed"

-- attack: select_hostile
-- expect: failed: index out of range
return select(math.mininteger, 1)

-- attack: split_hostile
-- expect: succeeded: refused
local refused = {
  pcall(string.split), pcall(string.split, "a"), pcall(string.split, "a", ""), pcall(string.split, 1, "1"),
  pcall(string.split, {}, ","), pcall(string.split, "a", ",", -1), pcall(string.split, "a", ",", 0),
  pcall(string.split, "a", ",", 1.5), pcall(string.split, "a", ",", 0/0), pcall(string.split, "a", ",", "2"),
  pcall(string.split, "a", ",", math.mininteger), pcall(string.split, setmetatable({}, {__index = string}), ","),
}
for i = 1, 12 do if refused[i] then return "accepted " .. i end end
local huge = ("a"):split(("x"):rep(1e7), math.huge)
return #("\0\255\0"):split("\0") == 3 and #huge == 1 and "refused"

-- attack: time_add_hostile
-- expect: succeeded: refused
local bad = {{years = 1e308}, {days = 0/0}, {days = 1/0}, {months = 0.5}, {months = math.mininteger}, {hours = "1"}, {x = 1}, {1}, {years = 9999}, {seconds = -1e12}, {days = {}}, 5}
for i = 1, #bad do if pcall(time.add, 0, bad[i]) then return "accepted " .. i end end
for _, moment in ipairs{0/0, 1/0, -1/0, 1e300, math.mininteger, math.maxinteger, "0"} do
  if pcall(time.add, moment, {}) or pcall(time.in_zone, moment, "UTC") then return "accepted " .. moment end
end
local function spin() while true do end end
time.add(0, setmetatable({}, {__index = spin, __pairs = spin}))
return "refused"

-- attack: time_hostile
-- expect: failed: time.format
return time.format(1e300)

-- attack: tonumber_hostile
-- expect: succeeded: nil
return tostring(tonumber(("9"):rep(1e6), 36) and nil)

-- attack: trim_hostile
-- expect: succeeded: trimmed
local spaces = (" "):rep(2e6)
for _ = 1, 20 do assert((spaces .. "a" .. spaces .. "b" .. spaces):trim() == "a" .. spaces .. "b") end
assert(#spaces:trim() == 0 and ("\0 \255 "):trim() == "\0 \255" and not pcall(string.trim, {}))
return "trimmed"

-- attack: url_decode_hostile
-- expect: succeeded: 3000000
return tostring(#url.decode(("%zz"):rep(1e6)))

-- attack: url_parse_hostile
-- expect: succeeded: refused
local bad = {"http://a b/", "http://h\\@evil/", "http://h\r\nx/", "http://h\0/", "http://é/", "http://h:1:2/", "http://u@v@h/", "http://[::1", "http://::1]/", "http://[::1]evil/", "http://h:-1/", "http://h:65536/", "http://h:1e3/", "%", "http://h/%0g", "1:x", ":x", "a#b#c", "x[", ("a "):rep(1e6)}
for i = 1, #bad do if pcall(url.parse, bad[i]) then return "accepted " .. i end end
assert(not pcall(url.parse) and not pcall(url.parse, {}) and not pcall(url.parse, 5))
for _, piece in ipairs{"a", ":", "/", "?", "@", "%00", "a:", "a.", "//a@", "[", "]", "1"} do
  pcall(url.parse, piece:rep(1e5))  pcall(url.parse, "http://" .. piece:rep(1e5))  pcall(url.parse, "http://[" .. piece:rep(1e5) .. "]:1")
end
return "refused"

-- attack: utf8_hostile
-- expect: failed: invalid UTF-8 code
for _ in utf8.codes("\xff\xff") do end

-- attack: zone_hostile
-- expect: succeeded: refused
for _, name in ipairs{"", ".", "..", "/etc/passwd", "../../../etc/passwd", "Europe/../UTC", "UTC\0", "\255", "localtime", "posix/UTC", "utc", "Europe", ("A"):rep(1e7), "%s", "__missing__"} do
  local ok, problem = pcall(time.in_zone, 0, name)
  if ok or #problem > 200 then return "accepted " .. name end
end
assert(not pcall(time.in_zone, 0) and not pcall(time.in_zone, 0, {}) and not pcall(time.in_zone, -62135596801, "UTC"))
return "refused"

-- attack: json_deep
-- expect: failed: nested deeper than 128 levels at line 1
return FromJson(("["):rep(1e6))

-- attack: json_deep_objects
-- expect: failed: nested deeper than 128 levels
return FromJson(('{"a":'):rep(1e5))

-- attack: json_huge_exponent
-- expect: failed: number out of range
return FromJson("1e999999999")

-- attack: json_invalid_utf8
-- expect: failed: invalid UTF-8 at line 1 column 2
return FromJson('"\xff"')

-- attack: json_long_fraction
-- expect: succeeded: 0.1
return FromJson("0." .. ("1"):rep(1e5)) < 0.12 and "0.1"

-- attack: json_long_number
-- expect: failed: integer out of the 64-bit range
return FromJson(("1"):rep(1e6))

-- attack: json_many_escapes
-- expect: succeeded: 100000
return tostring(#FromJson('"' .. ("\\n"):rep(1e5) .. '"'))

-- attack: json_many_values
-- expect: reply-too-large
return FromJson("[" .. ("[],"):rep(4e5) .. "[]]")

-- attack: json_unterminated
-- expect: failed: unterminated string
return FromJson('"' .. ("\\"):rep(1e6))

-- attack: json_write_invalid_utf8
-- expect: failed: not valid UTF-8
return ToJson("\xff")

-- attack: log_binary
-- expect: succeeded: done
print("\xff\0\27[31m")
log.error(nil, null, {}, print)
return "done"

-- attack: log_cannot_be_rewound
-- expect: succeeded: done
log.info("kept")
log = nil
print = nil
return "done"

-- attack: log_flood
-- expect: timed-out
-- limits: wall=0.3
while true do print("flood") end

-- attack: log_long_lines
-- expect: succeeded: done
for _ = 1, 100 do print(("x"):rep(1e6)) end
return "done"

-- attack: log_many_arguments
-- expect: succeeded: done
print(table.unpack({}, 1, 1e5))
return "done"

-- attack: log_table_hostile
-- expect: succeeded: logged
local cycle = {}
cycle.cycle = cycle
local shared = {"x"}
for _ = 1, 100 do shared = {shared, shared} end
local spin = setmetatable({1}, {__index = function() while true do end end, __pairs = error, __len = error})
for _ = 1, 100 do log.info(cycle, spin, {0/0, print}, shared, {"\255\0"}, {[{}] = 1}) end
log.error(setmetatable({}, {__metatable = false})) log.debug()
return "logged"
