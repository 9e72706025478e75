-- expect: succeeded: fresh
local leaking = { __index = function() return "leaked" end, __metatable = "leaked" }
for name, value in next, _G do
  if type(value) == "table" and value ~= _G and value ~= null then
    setmetatable(value, leaking)
  end
end
pcall(setmetatable, null, leaking)
pcall(rawset, getmetatable("") or {}, "__index", leaking)
setmetatable(_G, leaking)
-- the next run
for name, value in next, _G do
  if type(value) == "table" and value ~= null and getmetatable(value) ~= nil then
    return name
  end
end
return tostring(getmetatable(null)) == "false" and rawget(_G, "x") == nil and x or "fresh"
