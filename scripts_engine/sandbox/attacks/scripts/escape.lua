-- attack: escape_addresses_concat
-- expect: failed: attempt to concatenate a table value
return "" .. {}

-- attack: escape_addresses_error_object
-- expect: failed: an error object
error(setmetatable({ print }, { __tostring = function() error("no") end }))

-- attack: escape_addresses_format
-- expect: failed: '%p' is not available
return string.format("%5p", print)

-- attack: escape_addresses_format_method
-- expect: failed: '%p' is not available
return ("%%%p"):format({})

-- attack: escape_addresses_format_s
-- expect: succeeded: table function
return string.format("%s %s", {}, print)

-- attack: escape_addresses_name
-- expect: succeeded: X
return tostring(setmetatable({}, { __name = "X" }))

-- attack: escape_addresses_randomseed
-- expect: succeeded: 0
return tostring(select("#", math.randomseed()))

-- attack: escape_addresses_tostring
-- expect: succeeded: table function thread
return table.concat({ tostring({}), tostring(print), tostring(coroutine.create(print)) }, " ")

-- attack: escape_collectgarbage_is_absent
-- expect: succeeded: absent
return rawget(_G, "collectgarbage") == nil and "absent" or "there"

-- attack: escape_coroutine_of_platform_function
-- expect: succeeded: still here
for _, library in pairs({ crypto, base64, hex, time, uuid, params }) do
  for _, callable in pairs(library) do
    local co = coroutine.create(callable)
    coroutine.resume(co, "x", "y")
    coroutine.close(co)
  end
end
return "still here"

-- attack: escape_debug_is_absent
-- expect: succeeded: absent
return rawget(_G, "debug") == nil and "absent" or "there"

-- attack: escape_dofile_is_absent
-- expect: succeeded: absent
return rawget(_G, "dofile") == nil and "absent" or "there"

-- attack: escape_error_handler_sees_no_object
-- expect: succeeded: string
local _, kind = xpcall(function() return crypto.random_hex(-1) end, type)
return kind

-- attack: escape_exception_from_hostile_arguments
-- expect: succeeded: only strings
for _, name in ipairs({ "sha256", "equals", "random_hex", "hmac_sha256", "hmac_sha1" }) do
  for _, value in ipairs({ false, 0, 1e300, -1, {}, print, ("x"):rep(10), 0 / 0, math.huge }) do
    local ok, problem = pcall(crypto[name], value, value, value)
    assert(ok or type(problem) == "string", name)
  end
end
return "only strings"

-- attack: escape_exception_object
-- expect: succeeded: string string string
local kinds = {}
for i, call in ipairs({
  function() return base64.decode("%") end,
  function() return hex.decode("zz") end,
  function() return http.get("http://example.org/") end,
}) do
  local _, problem = pcall(call)
  kinds[i] = type(problem)
end
return table.concat(kinds, " ")

-- attack: escape_globals_metatable
-- expect: succeeded: done
setmetatable(_G, {
  __index = function() while true do end end,
  __newindex = function() while true do end end,
  __metatable = "mine",
})
return "done"

-- attack: escape_globals_overwritten
-- expect: succeeded: {"a":[1]}
local G, read, type = _G, FromJson, type
for name in pairs(G) do
  if type(G[name]) ~= "number" then G[name] = function() while true do end end end
end
return read('{"a": [1]}')

-- attack: escape_io_is_absent
-- expect: succeeded: absent
return rawget(_G, "io") == nil and "absent" or "there"

-- attack: escape_json_marks_are_hidden
-- expect: succeeded: nil nil
return tostring(getmetatable(FromJson("[]"))) .. " " .. tostring(getmetatable(FromJson("{}")))

-- attack: escape_lazy_library_is_locked
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

-- attack: escape_load_is_absent
-- expect: succeeded: absent
return rawget(_G, "load") == nil and "absent" or "there"

-- attack: escape_loadfile_is_absent
-- expect: succeeded: absent
return rawget(_G, "loadfile") == nil and "absent" or "there"

-- attack: escape_loadstring_is_absent
-- expect: succeeded: absent
return rawget(_G, "loadstring") == nil and "absent" or "there"

-- attack: escape_no_userdata_in_reach
-- expect: succeeded: none
local seen = {}
local function walk(value)
  assert(type(value) ~= "userdata", "userdata")
  if type(value) == "table" and not seen[value] then
    seen[value] = true
    for key, item in next, value do
      walk(key)
      walk(item)
    end
    walk(getmetatable(value))
  end
end
walk(_G)
walk({ coroutine.running() })
return "none"

-- attack: escape_null_is_locked
-- expect: succeeded: null false
pcall(rawset, null, "x", 1)
pcall(setmetatable, null, {})
return tostring(null) .. " " .. tostring(getmetatable(null))

-- attack: escape_os_execute_is_absent
-- expect: succeeded: absent
for _, name in ipairs({ "execute", "exit", "getenv", "remove", "rename", "tmpname", "setlocale" }) do
  assert(os[name] == nil, name)
end
return "absent"

-- attack: escape_package_is_absent
-- expect: succeeded: absent
return rawget(_G, "package") == nil and "absent" or "there"

-- attack: escape_python_attribute
-- expect: failed: attempt to index a function value
return crypto.sha256.__globals__

-- attack: escape_python_is_absent
-- expect: succeeded: absent
return rawget(_G, "python") == nil and "absent" or "there"

-- attack: escape_reply_mark_is_hidden
-- expect: succeeded: false
return tostring(getmetatable(Reply({})))

-- attack: escape_require_finds_no_modules
-- expect: succeeded: refused
for _, name in ipairs({ "_G", "debug", "io", "os", "package", "string", "lupa", "python", "/etc/passwd", "./init" }) do
  if pcall(require, name) then return "loaded " .. name end
end
return "refused"

-- attack: escape_string_dump_is_absent
-- expect: succeeded: absent
return rawget(string, "dump") == nil and ("").dump == nil and "absent" or "there"

-- attack: escape_string_functions_overwritten
-- expect: succeeded: {"a":"text"}
for name in pairs(string) do string[name] = function() error("mine") end end
for name in pairs(table) do table[name] = function() error("mine") end end
return { a = "text" }

-- attack: escape_string_metatable
-- expect: succeeded: false
return tostring(getmetatable(""))

-- attack: escape_string_metatable_index
-- expect: failed: attempt to index
getmetatable("").__index = function() end

-- attack: escape_string_metatable_setmetatable
-- expect: failed: bad argument
setmetatable("", {})

-- attack: escape_verdict_marks_are_hidden
-- expect: succeeded: false false
return tostring(getmetatable(Retry({}))) .. " " .. tostring(getmetatable(Fail({})))

-- attack: escape_warn_is_absent
-- expect: succeeded: absent
return rawget(_G, "warn") == nil and "absent" or "there"

-- attack: escape_yield_across_platform
-- expect: failed: attempt to yield from outside a coroutine
return crypto.sha256(coroutine.yield("x"))

-- attack: gc_hidden_behind_index
-- expect: succeeded: done
local metatable = setmetatable({}, { __index = { __gc = function()
  while true do end
end } })
setmetatable({}, metatable)
return "done"

-- attack: gc_is_refused
-- expect: succeeded: setmetatable: '__gc' is not available
local _, message = pcall(setmetatable, {}, { __gc = function()
  while true do end
end })
return (message:gsub("^.-: ", "", 0))

-- attack: gc_set_later_does_not_run
-- expect: succeeded: done
local metatable = {}
setmetatable({}, metatable)
metatable.__gc = function()
  while true do end
end
return "done"
