-- url.encode, url.decode, url.parse_query.
local private = ...
local expect, functions = private.expect, private.functions
local byte, char, find, format, gmatch, gsub, match =
  string.byte, string.char, string.find, string.format, string.gmatch, string.gsub, string.match
local tonumber = tonumber

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

local function parse_query(query)
  local values = {}
  for pair in gmatch(query, "[^&]+") do
    local name, value = match(pair, "^([^=]*)=(.*)$")
    name, value = decode(name or pair), decode(value or "")
    -- The first value of a repeated name is kept.
    if values[name] == nil then
      values[name] = value
    end
  end
  return values
end

functions["url.encode"] = function(text)
  expect("string", text, "url.encode")
  return (gsub(text, "[^%w%-._~]", encode_character))
end

functions["url.decode"] = function(text)
  expect("string", text, "url.decode")
  return decode(text)
end

functions["url.parse_query"] = function(query)
  expect("string", query, "url.parse_query")
  return parse_query(query)
end
