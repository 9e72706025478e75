-- params: the request that the run answers.
local private = ...
local call_python, expect, parse_query = private.call_python, private.expect, url.parse_query

-- A cache, so that a body is copied from Python only once.
local known = {}
local query_values

local function get(name)
  local value = known[name]
  if value == nil then
    value = call_python("param", name)
    known[name] = value
  end
  return value
end

private.param = get

function params.get(name)
  expect("string", name, "params.get")
  return get(name)
end

function params.header(name)
  expect("string", name, "params.header")
  return (call_python("header", name))
end

function params.query(name)
  expect("string", name, "params.query")
  query_values = query_values or parse_query(get("query") or "")
  return query_values[name]
end
