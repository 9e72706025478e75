-- attack: library_chain
-- expect: succeeded: 99
return tostring(require("link1"))
-- library: link 1 to 99
if NUMBER == 99 then return 99 end
return (require("link" .. NUMBER + 1))

-- attack: library_changes_what_require_uses
-- expect: succeeded: inner
require("hostile")
return require("outer")
-- library: hostile
for name in next, string do string[name] = nil end
for _, name in next, { "error", "setmetatable", "type", "pcall", "select", "rawget" } do
  _G[name] = nil
end
-- library: outer
return require("inner")
-- library: inner
return "inner"

-- attack: library_close_hostile
-- expect: failed: boom in close
return require("closing")
-- library: closing
local guard <close> = setmetatable({}, { __close = function() error("boom in close") end })
return 1

-- attack: library_closed_coroutine
-- expect: succeeded: 2
local stuck = coroutine.create(require)
coroutine.resume(stuck, "counting")
coroutine.close(stuck)
return tostring(coroutine.wrap(require)("counting"))
-- library: counting
count = (count or 0) + 1
coroutine.yield(count)

-- attack: library_coroutine
-- expect: succeeded: false true 7 7 1
local load = coroutine.wrap(require)
load("slow")
local early = pcall(require, "slow")
local value = load()
return table.concat({ tostring(early), tostring(value == require("slow")), value, require("slow"), count }, " ")
-- library: slow
count = (count or 0) + 1
coroutine.yield("halfway")
return 7

-- attack: library_cycle
-- expect: failed: third:2: require: the library "first" requires itself before it has returned
return require("first")
-- library: first
return require("second")
-- library: second
return require("third")
-- library: third

local first = require("first")
return first

-- attack: library_cycle_caught
-- expect: succeeded: 1 1
require("first")
return loads .. " " .. #caught
-- library: first
loads = (loads or 0) + 1
require("second")
-- library: second
caught = { select(2, pcall(require, "first")) }

-- attack: library_deep_protected_calls
-- expect: succeeded: refused
local function deep(level)
  if level == 0 then return (require("plain")) end
  return pcall(deep, level - 1)
end
local function deeper(level)
  return select(2, pcall(level == 0 and require or deeper, level == 0 and "plain" or level - 1))
end
deep(1e4)
deeper(1e4)
return require("plain") == "plain" and "refused"
-- library: plain
return "plain"

-- attack: library_dense_graph
-- expect: succeeded: 99
require("node1")
return tostring(loads)
-- library: node 1 to 99
loads = (loads or 0) + 1
for number = NUMBER + 1, 99 do require("node" .. number) end

-- attack: library_endless_load
-- expect: timed-out
-- limits: wall=0.3
return require("endless")
-- library: endless
while true do end

-- attack: library_endless_tries
-- expect: timed-out
-- limits: wall=0.3
while true do pcall(require, "broken") end
-- library: broken
return return

-- attack: library_error_is_not_remembered
-- expect: succeeded: 3 fine
for _ = 1, 2 do assert(not pcall(require, "failing")) end
local value = require("failing")
return count .. " " .. value
-- library: failing
count = (count or 0) + 1
if count < 3 then error({ count }) end
return "fine"

-- attack: library_error_object
-- expect: failed: an error object
return require("failing")
-- library: failing
error(setmetatable({ print }, { __tostring = function() error("no") end }))

-- attack: library_finalizer
-- expect: failed: '__gc' is not available
return require("late")
-- library: late
return setmetatable({}, { __gc = function() end })

-- attack: library_from_callbacks
-- expect: succeeded: false table table
local handled = select(2, xpcall(error, require, "plain"))
local replaced = pcall(string.gsub, "plain", "%a+", require)
assert(pcall(table.sort, { "plain", "plain", "plain" }, function(name) return not require(name) end))
string.required = require
local kinds = { tostring(replaced), type(handled), type(("plain"):required()) }
assert(not pcall(function() return setmetatable({}, { __index = require }).plain end))
assert(not pcall(string.gsub, "yielding", "%a+", require))
return table.concat(kinds, " ")
-- library: plain
return setmetatable({}, { __lt = function() return true end, __name = "plain" })
-- library: yielding
coroutine.yield()

-- attack: library_hidden_main_function
-- expect: succeeded: hidden
require("plain")
local main = select("#", pcall(coroutine.running))
return rawget(_G, "package") == nil and rawget(_G, "debug") == nil and main and "hidden"
-- library: plain
return coroutine.running()

-- attack: library_memory_together
-- expect: out-of-memory
-- limits: memory=8
for number = 1, 99 do require("large" .. number) end
-- library: large 1 to 99
return { ("x"):rep(200000 + NUMBER) }

-- attack: library_name_games
-- expect: succeeded: refused
local long = ("plain"):rep(1e6)
local names = { "", "\0", "plain\0", "\0plain", "Plain", " plain", "plain ", "plain\n", "\255", "pla\u{131}n", long,
  "__index", "__gc", "require", "_G", "../plain", "plain.lua", "=plain", "@plain", "string", "math" }
for _, name in ipairs(names) do if pcall(require, name) then return "loaded " .. #name end end
local function spin() while true do end end
local traps = { __index = spin, __tostring = spin, __eq = spin, __len = spin, __concat = spin, __name = "plain" }
local objects = { {}, setmetatable({ "plain" }, traps), 0, 1.5, true, print, null, coroutine.create(print), array({}) }
for index = 1, #objects do if pcall(require, objects[index]) then return "loaded object " .. index end end
return not pcall(require) and not pcall(require, nil, "plain") and require("plain", {}) == "plain" and "refused"
-- library: plain
return "plain"

-- attack: library_params_with_metatables
-- expect: succeeded: POST plain
local function spin() while true do end end
setmetatable(params, { __index = spin, __newindex = spin })
setmetatable(_G, { __index = spin })
return params.get("method") .. " " .. require("plain")
-- library: plain
return "plain"

-- attack: library_redefines_require
-- expect: succeeded: inner
require("hostile")
return _G.outer
-- library: hostile
local genuine = require
require = function() return "hostile" end
_G.require = require
_G.outer = genuine("outer")
-- library: outer
return require("inner")
-- library: inner
return "inner"

-- attack: library_returns_nothing
-- expect: succeeded: 0 1
local first, second = require("silent"), require("silent")
return select("#", first) - 1 .. " " .. loads
-- library: silent
loads = (loads or 0) + 1

-- attack: library_varargs
-- expect: succeeded: 1 function
return require("curious")
-- library: curious
return select("#", ...) .. " " .. type(...)

-- attack: library_with_200_locals_of_its_own
-- expect: failed: too many local variables
return require("crowded")
-- library: crowded
local a1,a2,a3,a4,a5,a6,a7,a8,a9,a10,a11,a12,a13,a14,a15,a16,a17,a18,a19,a20,a21,a22,a23,a24,a25,a26,a27,a28,a29,a30,a31,a32,a33,a34,a35,a36,a37,a38,a39,a40
local b1,b2,b3,b4,b5,b6,b7,b8,b9,b10,b11,b12,b13,b14,b15,b16,b17,b18,b19,b20,b21,b22,b23,b24,b25,b26,b27,b28,b29,b30,b31,b32,b33,b34,b35,b36,b37,b38,b39,b40
local c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24,c25,c26,c27,c28,c29,c30,c31,c32,c33,c34,c35,c36,c37,c38,c39,c40
local d1,d2,d3,d4,d5,d6,d7,d8,d9,d10,d11,d12,d13,d14,d15,d16,d17,d18,d19,d20,d21,d22,d23,d24,d25,d26,d27,d28,d29,d30,d31,d32,d33,d34,d35,d36,d37,d38,d39,d40
local e1,e2,e3,e4,e5,e6,e7,e8,e9,e10,e11,e12,e13,e14,e15,e16,e17,e18,e19,e20,e21,e22,e23,e24,e25,e26,e27,e28,e29,e30,e31,e32,e33,e34,e35,e36,e37,e38,e39,e40
