-- null, array and object, which JSON has and Lua does not.
local private = ...
local error, setmetatable = error, setmetatable
local expect = private.expect

-- Metatables that only mark a table; scripts never get them.
local array_mark, object_mark = {}, {}
private.array_mark, private.object_mark = array_mark, object_mark

-- The maximum nesting of arrays and objects, both read and written.
private.json_depth = 128

local function refuse()
  error("attempt to index null", 2)
end

null = setmetatable({}, {
  __name = "null",
  __metatable = false,
  __tostring = function()
    return "null"
  end,
  __index = refuse,
  __newindex = refuse,
})

private.null = null

function array(items)
  expect("table", items, "array")
  return setmetatable(items, array_mark)
end

function object(fields)
  expect("table", fields, "object")
  return setmetatable(fields, object_mark)
end
