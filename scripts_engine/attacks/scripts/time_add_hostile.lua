-- expect: succeeded: refused
local bad = {{years = 1e308}, {days = 0/0}, {days = 1/0}, {months = 0.5}, {months = math.mininteger}, {hours = "1"}, {x = 1}, {1}, {years = 9999}, {seconds = -1e12}, {days = {}}, 5}
for i = 1, #bad do if pcall(time.add, 0, bad[i]) then return "accepted " .. i end end
for _, moment in ipairs{0/0, 1/0, -1/0, 1e300, math.mininteger, math.maxinteger, "0"} do
  if pcall(time.add, moment, {}) or pcall(time.in_zone, moment, "UTC") then return "accepted " .. moment end
end
local function spin() while true do end end
time.add(0, setmetatable({}, {__index = spin, __pairs = spin}))
return "refused"
