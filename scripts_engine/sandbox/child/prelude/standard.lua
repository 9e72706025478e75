-- The standard library without memory addresses, finalizers and system functions.
local shared = ...
local debug_getmetatable = shared.debug.getmetatable
local error, getmetatable_of, setmetatable_of = error, getmetatable, setmetatable
local raw_tostring, rawequal, rawget, select, type = tostring, rawequal, rawget, select, type
local find, gsub, raw_format = string.find, string.gsub, string.format
local pack, string_unpack, unpack = table.pack, string.unpack, table.unpack
local randomseed = math.randomseed
local array_mark, object_mark = shared.array_mark, shared.object_mark

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

-- Hides the metatables that mark JSON values.
function getmetatable(value)
  local kind = type(value)
  if kind ~= "table" then
    -- A string's metatable is locked, hence false; other types have none that a script may see.
    if kind == "string" then
      return false
    end
    return nil
  end
  local metatable = debug_getmetatable(value)
  if rawequal(metatable, array_mark) or rawequal(metatable, object_mark) then
    return nil
  end
  return getmetatable_of(value)
end

function setmetatable(value, metatable)
  -- A finalizer could run after the script has ended.
  if type(metatable) == "table" and rawget(metatable, "__gc") ~= nil then
    error("setmetatable: '__gc' is not available", 2)
  end
  return setmetatable_of(value, metatable)
end

shared.date = os.date
os = { clock = os.clock, date = os.date, difftime = os.difftime, time = os.time }

-- Without arguments, Lua's own function returns its seed, which contains an address.
shared.randomseed = randomseed

function math.randomseed(...)
  if select("#", ...) == 0 then
    randomseed(string_unpack("i8i8", (shared.run.call_python("random", 16))))
  else
    randomseed(...)
  end
end
