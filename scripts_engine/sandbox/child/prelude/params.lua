-- params: the request that the run answers.
local private = ...
local call_python, expect, later = private.call_python, private.expect, private.later

-- A cache, so that a body is copied from Python only once.
local known = {}
local query_values
local parse_query = later("url")("url.parse_query")

local function get(name)
  local value = known[name]
  if value == nil then
    value = call_python("param", name)
    known[name] = value
  end
  return value
end

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
}
