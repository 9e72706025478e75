-- tostring and string.format without memory addresses, and a locked string metatable.
local shared = ...
local debug_getmetatable = shared.debug.getmetatable
local error, rawget, type = error, rawget, type
local raw_tostring, pack, unpack = tostring, table.pack, table.unpack
local find, gsub, raw_format = string.find, string.gsub, string.format

-- The default text of these types contains an address.
local has_address = { table = true, ["function"] = true, thread = true, userdata = true }

function tostring(value)
  local kind = type(value)
  if not has_address[kind] then
    return raw_tostring(value)
  end
  local metatable = debug_getmetatable(value)
  if metatable then
    local converter = rawget(metatable, "__tostring")
    if converter ~= nil then
      local text = converter(value)
      if type(text) ~= "string" then
        error("'__tostring' must return a string", 2)
      end
      return text
    end
    local name = rawget(metatable, "__name")
    if type(name) == "string" then
      return name
    end
  end
  return kind
end

local tostring = tostring
shared.originals.tostring = tostring

function string.format(pattern, ...)
  if type(pattern) == "string" and find(pattern, "p", 1, true) then
    if find(gsub(pattern, "%%%%", ""), "%%[^%a%%]*p") then
      error("string.format: '%p' is not available", 2)
    end
  end
  local values = pack(...)
  for index = 1, values.n do
    if has_address[type(values[index])] then
      values[index] = tostring(values[index])
    end
  end
  return raw_format(pattern, unpack(values, 1, values.n))
end

string.dump = nil
debug_getmetatable("").__metatable = false
