-- Lists every name that a script can reach, for comparison with the allow-list in runtime.py.
local private = ...
local debug, format = private.debug, string.format
local concat, sort = table.concat, table.sort
local next, tostring, type = next, tostring, type

local function walk(value, path, seen, names)
  -- All strings share one metatable, which is walked once, below.
  local metatable = type(value) ~= "string" and debug.getmetatable(value)
  if metatable then
    walk(metatable, path .. "<metatable>.", seen, names)
  end
  if type(value) ~= "table" or seen[value] then
    return
  end
  seen[value] = true
  for key, item in next, value do
    local name = path .. tostring(key)
    names[#names + 1] = name .. " " .. type(item)
    walk(item, name .. ".", seen, names)
  end
end

-- Returns one line for each name that a script can reach, also through a metatable:
-- "string.rep function".
function private.functions.list_names()
  local names, seen = {}, {}
  walk(private.environment, "", seen, names)
  walk(debug.getmetatable(""), "<string>.<metatable>.", seen, names)
  for _, sample in next, { 0, true, walk, coroutine.create(walk) } do
    walk(sample, format("<%s>.", type(sample)), seen, names)
  end
  sort(names)
  return concat(names, "\n")
end
