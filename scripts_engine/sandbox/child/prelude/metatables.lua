-- setmetatable without __gc, getmetatable without the metatables that mark JSON values.
local shared = ...
local raw_getmetatable = shared.debug.getmetatable
local error, getmetatable_of, rawequal, rawget, setmetatable_of =
  error, getmetatable, rawequal, rawget, setmetatable
local type = type
local array_mark, object_mark = shared.array_mark, shared.object_mark

function getmetatable(value)
  local kind = type(value)
  if kind ~= "table" then
    -- A string's metatable is locked, hence false; other types have none that a script may see.
    if kind == "string" then
      return false
    end
    return nil
  end
  local metatable = raw_getmetatable(value)
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
