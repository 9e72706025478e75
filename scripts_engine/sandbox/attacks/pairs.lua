-- attack: callbacks
-- expect: succeeded: 1,2,3 b
local function failing()
  error({ leaked = "leaked" })
end
local function yielding()
  coroutine.yield("leaked")
end
for _, callback in ipairs({ failing, yielding }) do
  pcall(table.sort, { 3, 1, 2 }, callback)
  pcall(string.gsub, "abc", ".", callback)
  coroutine.wrap(function() pcall(table.sort, { 3, 1, 2 }, callback) end)()
  coroutine.wrap(function() xpcall(callback, yielding) end)()
  pcall(inspect, setmetatable({}, { __index = callback, __name = "leaked" }))
  pcall(log.info, setmetatable({}, { __tostring = callback }))
  pcall(tostring, setmetatable({}, { __tostring = callback }))
end
-- the next run
local sorted = { 3, 1, 2 }
table.sort(sorted)
return table.concat(sorted, ",") .. " " .. ("a"):gsub(".", { a = "b" })

-- attack: coroutines
-- expect: succeeded: fresh
kept = coroutine.wrap(function()
  local guard <close> = setmetatable({}, { __close = function() leaked = "leaked" end })
  while true do
    leaked = coroutine.yield()
  end
end)
kept()
called = coroutine.create(ToJson)
coroutine.resume(called, setmetatable({}, { __index = kept }), {})
printing = coroutine.wrap(function()
  print(setmetatable({}, { __tostring = function() coroutine.yield() return "leaked" end }))
end)
printing()
-- the next run
return leaked or kept or called or printing or "fresh"

-- attack: errors
-- expect: succeeded: attempt to index null; demo;false
xpcall(error, function(problem) leaked = problem return problem end, "leaked")
pcall(function() return null.leaked end)
pcall(error, setmetatable({}, { __tostring = function() return "leaked" end, __name = "leaked" }))
function demo()
  error("leaked")
end
pcall(demo)
pcall(string.rep)
pcall(setmetatable, 1, 2)
-- the next run
local _, message = pcall(function() return null.field end)
local _, other = pcall(error, "demo", 0)
return message:gsub("^.-: ", "") .. "; " .. other .. ";" .. tostring(leaked ~= nil)

-- attack: finalizers
-- expect: succeeded: fresh
local leaking = setmetatable({}, { __mode = "kv" })
local late = {}
for index = 1, 100 do
  leaking[index] = setmetatable({}, late)
end
late.__gc = function() string.leaked = "leaked" end
pcall(setmetatable, _G, { __gc = function() leaked = "leaked" end })
local closed <close> = setmetatable({}, { __close = function() leaked = "leaked" end })
-- the next run
local garbage
for index = 1, 1000 do
  garbage = { index }
end
return leaked or ("").leaked or "fresh"

-- attack: functions_replaced
-- expect: succeeded: 1970-01-01T00:00:00Z {"a":[1]} 3,4
local function other()
  return "leaked"
end
for name, value in next, _G do
  if type(value) == "function" and name ~= "next" and name ~= "type" then
    _G[name] = other
  end
end
string.format, string.gsub, string.find, table.concat, table.sort, os.date =
  other, other, other, other, other, other
-- the next run
local sorted = { 4, 3 }
table.sort(sorted)
return time.format(0) .. " " .. ToJson(FromJson('{"a":[1]}')) .. " " .. table.concat(sorted, ",")

-- attack: globals
-- expect: succeeded: fresh
leaked, _G.also, _ENV.third = "leaked", "leaked", "leaked"
rawset(_G, 1, "leaked")
local own = _ENV
_ENV = { leaked = "leaked" }
own.by_the_old_name = "leaked"
-- the next run
return leaked or also or third or _G[1] or by_the_old_name or "fresh"

-- attack: json_values
-- expect: succeeded: fresh
local function taint(value)
  setmetatable(value, { __index = { leaked = "leaked" } })
  rawset(value, "leaked", "leaked")
end
taint(FromJson("{}"))
taint(FromJson("[]"))
taint(array({}))
taint(object({}))
taint(url.parse_query("a=1", { multi = true }))
pcall(FromJson, '{"a": [1, tru')
pcall(ToJson, { leaked = { print } })
local cycle = {}
cycle[1] = cycle
pcall(ToJson, { deep = cycle })
-- the next run
local _, message = pcall(ToJson, { { print } })
local values = { FromJson("{}"), FromJson("[]"), array({}), object({}), url.parse_query("") }
for _, value in ipairs(values) do
  if value.leaked or next(value) ~= nil then
    return "leaked"
  end
end
return message:find("leaked") and message or ToJson(FromJson("[{}]")) == "[{}]" and "fresh"

-- attack: libraries
-- expect: succeeded: fresh
for _, library in next, _G do
  if type(library) == "table" and library ~= _G and library ~= null then
    for name in next, library do
      library[name] = type(name)
    end
    library.leaked = "leaked"
  end
end
-- the next run
for name, library in next, _G do
  if type(library) == "table" and library ~= _G and library ~= null then
    for member, value in next, library do
      if member == "leaked" or value == "string" then
        return name .. "." .. member
      end
    end
  end
end
return "fresh"

-- attack: main_coroutine
-- expect: succeeded: running true fresh
main = coroutine.running()
local by_thread = setmetatable({}, { __mode = "k" })
by_thread[main] = "leaked"
pcall(coroutine.close, main)
pcall(coroutine.resume, main)
coroutine.wrap(function() pcall(coroutine.close, main) end)()
local guard <close> = setmetatable({}, { __close = function() leaked = "leaked" end })
-- the next run
local thread, is_main = coroutine.running()
return coroutine.status(thread) .. " " .. tostring(is_main) .. " " .. (leaked or "fresh")

-- attack: memory
-- expect: succeeded: 650000
-- limits: memory=1
hoard = {}
for index = 1, 8 do
  hoard[index] = ("leak" .. index):rep(16000)
end
-- the next run
local whole = {}
for index = 1, 10 do
  whole[index] = ("y"):rep(65000 - #tostring(index)) .. index
end
local bytes = 0
for _, each in ipairs(whole) do
  bytes = bytes + #each
end
return tostring(bytes)

-- attack: metatables
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

-- attack: null
-- expect: succeeded: fresh
rawset(null, "leaked", "leaked")
rawset(null, 1, "leaked")
-- the next run
return rawget(null, "leaked") or rawget(null, 1) or next(null) or "fresh"

-- attack: random_continued
-- expect: succeeded: unknown
-- The run that knows the state of the generator would know what the next run draws.
math.randomseed(42)
for _ = 1, 100 do
  math.random(0)
end
-- the next run
local first, second = math.random(0), math.random(0)
math.randomseed(42)
local before
for _ = 1, 1000 do
  local value = math.random(0)
  if before == first and value == second then
    return "known"
  end
  before = value
end
return "unknown"

-- attack: random_seed
-- expect: succeeded: unknown
math.randomseed(42)
-- the next run
local first = math.random(0)
math.randomseed(42)
for _ = 1, 100 do
  if math.random(0) == first then
    return "known"
  end
end
return "unknown"

-- attack: removed_keys
-- expect: succeeded: fresh
-- A removed key stays in its table, where `next` accepts it: that alone would tell of it.
for _, each in next, { _G, null, string, math, table, utf8, coroutine, os, params, log, http } do
  rawset(each, 4711, true)
  rawset(each, 4711, nil)
  rawset(each, "a secret", true)
  rawset(each, "a secret", nil)
end
-- the next run
for name, each in next, _G do
  if type(each) == "table" and (pcall(next, each, 4711) or pcall(next, each, "a secret")) then
    return name
  end
end
return "fresh"

-- attack: reply
-- expect: succeeded: second
kept = Reply({ status = 201, headers = { ["X-Leaked"] = "leaked" }, body = "first" })
changes = coroutine.wrap(function()
  while true do
    kept.body = coroutine.yield() or "leaked"
  end
end)
changes()
pcall(setmetatable, Reply({}), nil)
return kept
-- the next run
if kept or changes then
  return "leaked"
end
return Reply({ body = "second" })

-- attack: string_methods
-- expect: succeeded: nil nil x
function string.shout(text)
  return text:upper() .. "!"
end
string.leaked = ("x"):shout()
string.rep = nil
setmetatable(string, { __index = { deep = "leaked" } })
-- the next run
return tostring(("x").leaked or ("x").shout) .. " " .. tostring(("x").deep) .. " " .. ("x"):rep(1)

-- attack: time
-- expect: succeeded: 1970-01-02 86400 true
os.date("!%c", 1)
pcall(os.date, "%Ez")
os.time({ year = 2000, month = 13, day = 45, isdst = true })
time.parse("2000-01-01")
pcall(time.parse, "leaked")
time.in_zone(0, "Europe/Berlin")
os.time, time.now, os.clock = nil, nil, nil
-- the next run
local day = os.time({ year = 1970, month = 1, day = 2, hour = 0 })
return os.date("!%Y-%m-%d", day) .. " " .. day .. " " .. tostring(time.now() > day and os.clock() > 0)

-- attack: upvalues
-- expect: succeeded: fresh
-- Every function of the platform is called with what could stay in its upvalues.
local leaking = setmetatable({ leaked = "leaked" }, { __index = { leaked = "leaked" } })
local skipped = { [_G] = true, [null] = true, [coroutine] = true, [http] = true, [store] = true }
for name, library in next, _G do
  if type(library) == "table" and not skipped[library] then
    for member, value in next, library do
      if member ~= "rep" and type(value) == "function" then
        pcall(value, "leaked", leaking)
      end
    end
  end
end
pcall(ToJson, leaking, leaking)
pcall(inspect, leaking)
pcall(Reply, leaking)
pcall(Retry, leaking)
pcall(Fail, leaking)
-- the next run
local text = inspect({ params.query("leaked"), params.header("leaked"), params.get("leaked") })
return text:find("leaked") and text or ToJson({}) == "[]" and "fresh"

-- attack: verdict
-- expect: succeeded: second
kept = Retry({ after = 5, reason = "leaked" })
pcall(setmetatable, kept, nil)
pcall(setmetatable, Fail({}), nil)
Retry, Fail = Fail, Retry
return "first"
-- the next run
if kept then
  return "leaked"
end
return pcall(Fail, { after = 5 }) and "leaked" or "second"

-- attack: library_globals
-- expect: succeeded: fresh 1
return require("shared").count
-- library: shared
leaked, string.leaked, math.leaked = 1, 1, 1
loads = (loads or 0) + 1
return { count = loads }
-- the next run
local before = leaked or ("").leaked or math.leaked or "fresh"
return before .. " " .. require("shared").count
-- library: shared
leaked, string.leaked, math.leaked = 1, 1, 1
loads = (loads or 0) + 1
return { count = loads }

-- attack: library_left_loading
-- expect: succeeded: finished
coroutine.wrap(require)("slow")
-- library: slow
if not started then started = true coroutine.yield() end
return "finished"
-- the next run
started = true
return require("slow")
-- library: slow
if not started then started = true coroutine.yield() end
return "finished"

-- attack: library_metatables
-- expect: succeeded: fresh
local shared = require("shared")
setmetatable(shared, { __index = function() return "leaked" end })
setmetatable(shared.inner, { __call = function() return "leaked" end })
shared.own = "leaked"
-- library: shared
return { inner = {} }
-- the next run
local shared = require("shared")
return shared.own or shared.any or getmetatable(shared.inner) or "fresh"
-- library: shared
return { inner = {} }

-- attack: library_require_replaced
-- expect: succeeded: genuine
require("shared")
require = nil
_G.require = nil
-- library: shared
require, _G.require = nil, nil
return "genuine"
-- the next run
return require("shared")
-- library: shared
require, _G.require = nil, nil
return "genuine"

-- attack: library_upvalues
-- expect: succeeded: 1 nil
local shared = require("shared")
shared.count()
shared.keep("leaked")
return shared.count()
-- library: shared
local count, kept = 0, nil
return {
  count = function() count = count + 1 return count end,
  keep = function(value) kept = value end,
  kept = function() return kept end,
}
-- the next run
local shared = require("shared")
return shared.count() .. " " .. tostring(shared.kept())
-- library: shared
local count, kept = 0, nil
return {
  count = function() count = count + 1 return count end,
  keep = function(value) kept = value end,
  kept = function() return kept end,
}
