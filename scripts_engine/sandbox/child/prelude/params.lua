-- params: the request that the run answers.
local private = ...
local call_python, expect, single = private.call_python, private.expect, private.single

-- A cache, so that a body is copied from Python only once.
local known = {}
local query_values
local parse_query = single("url.parse_query")

local function get(name)
  local value = known[name]
  if value == nil then
    value = call_python("param", name)
    known[name] = value
  end
  return value
end

private.param = get

params = {
  get = function(name)
    expect("string", name, "params.get")
    return get(name)
  end,
  header = function(name)
    expect("string", name, "params.header")
    return (call_python("header", name))
  end,
  query = function(name)
    expect("string", name, "params.query")
    query_values = query_values or parse_query(get("query") or "")
    return query_values[name]
  end,
  json = single("params.json"),
  form = single("params.form"),
}
