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
