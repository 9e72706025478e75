-- expect: succeeded: parsed
for _, piece in ipairs{"&", "=", "a&", "a=&", "%&", "%0&", "+", "\0\255=&"} do
  url.parse_query(piece:rep(2e5))  url.parse_query(piece:rep(2e5), {multi = true})
end
local function spin() while true do end end
assert(#url.parse_query("", setmetatable({}, {__index = spin, __pairs = spin})) == 0)
assert(not pcall(url.parse_query, "", {multi = 1}) and not pcall(url.parse_query, "", {x = true}) and not pcall(url.parse_query, "", 5))
return "parsed"
