-- expect: succeeded: locked
local split, inspect, assert, getmetatable, next = string.split, inspect, assert, getmetatable, next
for _, library in ipairs{string, url, time, crypto, html, params} do
  assert(getmetatable(library) == nil)
  for name in pairs(library) do library[name] = nil end
end
local globals = _G
for name in next, globals do globals[name] = nil end
assert(split("a,b", ",")[2] == "b" and inspect({1}) ~= "")
return "locked"
