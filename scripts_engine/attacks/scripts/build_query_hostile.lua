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
