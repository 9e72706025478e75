-- setmetatable without __gc, getmetatable without the platform's own marks.
local private = ...
local raw_getmetatable = private.debug.getmetatable
local error, getmetatable_of, rawequal, rawget, setmetatable_of =
  error, getmetatable, rawequal, rawget, setmetatable
local type = type
local array_mark, object_mark = private.array_mark, private.object_mark

function getmetatable(value)
  local kind = type(value)
  if kind ~= "table" then
    -- A string says false; nothing else has a metatable that a script may know of.
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
  -- A finalizer would run after the script has ended.
  if type(metatable) == "table" and rawget(metatable, "__gc") ~= nil then
    error("setmetatable: '__gc' is not available", 2)
  end
  return setmetatable_of(value, metatable)
end
