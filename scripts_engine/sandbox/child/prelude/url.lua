-- url.encode, url.decode, url.parse_query.
local private = ...
local array_mark, object_mark = private.array_mark, private.object_mark
local expect, functions = private.expect, private.functions
local byte, char, find, format, gmatch, gsub, match =
  string.byte, string.char, string.find, string.format, string.gmatch, string.gsub, string.match
local error, next, rawget, setmetatable = error, next, rawget, setmetatable
local tonumber, tostring = tonumber, tostring

local function encode_character(character)
  return format("%%%02X", byte(character))
end

local function decode_hex(digits)
  return char(tonumber(digits, 16))
end

local function decode(text)
  if find(text, "+", 1, true) then
    text = gsub(text, "+", " ")
  end
  if find(text, "%", 1, true) then
    text = gsub(text, "%%(%x%x)", decode_hex)
  end
  return text
end

-- Keeps the first value of a repeated name; with `is_multi`, each name gets an array of all values.
local function parse_query(query, is_multi)
  local values = {}
  for pair in gmatch(query, "[^&]+") do
    local name, value = match(pair, "^([^=]*)=(.*)$")
    name, value = decode(name or pair), decode(value or "")
    local known = values[name]
    if is_multi then
      known = known or setmetatable({}, array_mark)
      known[#known + 1] = value
      values[name] = known
    elseif known == nil then
      values[name] = value
    end
  end
  return is_multi and setmetatable(values, object_mark) or values
end

private.parse_query = parse_query

-- Reads the options of a function that parses names with values.
function private.is_multi(options, what)
  if options == nil then
    return false
  end
  expect("table", options, what .. ": options", 2)
  for name, value in next, options do
    if name ~= "multi" then
      error(what .. ": unknown option " .. tostring(name), 3)
    end
    expect("boolean", value, what .. ": multi", 2)
  end
  return rawget(options, "multi") == true
end

local function encode(text)
  return (gsub(text, "[^%w%-._~]", encode_character))
end

functions["url.encode"] = function(text)
  expect("string", text, "url.encode")
  return encode(text)
end

functions["url.decode"] = function(text)
  expect("string", text, "url.decode")
  return decode(text)
end

functions["url.parse_query"] = function(query, options)
  expect("string", query, "url.parse_query")
  local is_multi = private.is_multi(options, "url.parse_query")
  return parse_query(query, is_multi)
end
