-- null, array and object, which JSON has and Lua does not.
local shared = ...
local error, setmetatable = error, setmetatable
local expect = shared.expect

-- Metatables that only mark a table; scripts never get them.
local array_mark, object_mark = {}, {}
shared.array_mark, shared.object_mark = array_mark, object_mark

local function refuse()
  error("attempt to index null", 2)
end

-- Hidden from scripts, too; each run has a null of its own, since `rawset` could write to it.
shared.null_metatable = {
  __name = "null",
  __metatable = false,
  __tostring = function()
    return "null"
  end,
  __index = refuse,
  __newindex = refuse,
}

function array(items)
  expect("table", items, "array")
  return setmetatable(items, array_mark)
end

function object(fields)
  expect("table", fields, "object")
  return setmetatable(fields, object_mark)
end
