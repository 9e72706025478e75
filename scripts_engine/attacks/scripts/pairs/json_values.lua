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
