-- Describes everything that a Lua state refers to, from its registry: one line for each table, and
-- each function with its code and upvalues. Equal texts mean equal graphs: the same names, types,
-- values, metatables and identities.
local private = ...
local call_python, debug, dump = private.call_python, private.debug, private.dump
local format, concat, sort = string.format, table.concat, table.sort
local next, rawequal, tostring, type = next, rawequal, tostring, type

-- Which code earlier runs have compiled, and how much memory the state holds, is not compared.
local ignored = {
  [private.compiled] = true,
  [private.compiled_scripts] = true,
  [private.library_cache] = true,
}
local ignored_fields = { new_kilobytes = true, idle_kilobytes = true, script_count = true }

local is_object = { table = true, ["function"] = true, thread = true, userdata = true }

local function only_refers_to(value, compiled)
  local name, upvalue = debug.getupvalue(compiled, 1)
  return name and rawequal(upvalue, value) and debug.getupvalue(compiled, 2) == nil
end

local function by_text(a, b)
  return a.text < b.text
end

function private.functions.walk()
  -- Lua's buffers create their metatable with the first long string; no script can reach it.
  string.gsub(format("%99s", ""), " ", format("%99s", ""))
  for _, chunk in next, private.compiled do
    if not only_refers_to(private.originals, chunk) then
      return "a compiled chunk refers to more than the original functions"
    end
  end
  for _, script in next, private.compiled_scripts do
    if not only_refers_to(nil, script) then
      return "a compiled script refers to the environment of a run"
    end
  end
  for _, library in next, private.library_cache.libraries do
    if not only_refers_to(nil, library["main chunk"]) then
      return "a compiled library refers to the environment of a run"
    end
  end
  local numbers, paths, found, lines = {}, {}, {}, {}

  -- Objects are numbered in the order in which they are found, which their names decide.
  local function named(value, path)
    local kind = type(value)
    if not is_object[kind] then
      return kind == "string" and format("%q", value) or kind .. " " .. tostring(value)
    end
    if not numbers[value] then
      found[#found + 1] = value
      numbers[value], paths[#found] = #found, path
    end
    return kind .. " #" .. numbers[value]
  end

  local function add(...)
    lines[#lines + 1] = concat({ ... }, " ")
  end

  local function walk_table(value, path)
    local keys = {}
    for key in next, value do
      if not ignored_fields[key] then
        keys[#keys + 1] = { key = key, text = type(key) .. " " .. tostring(key) }
      end
    end
    sort(keys, by_text)
    for _, each in next, keys do
      local item = path .. "." .. each.text
      add(path, named(each.key, item), "=", named(value[each.key], item))
    end
  end

  local function walk_function(value, path)
    local is_lua, code = pcall(dump, value, true)
    add(path, is_lua and call_python("crypto.sha256", code) or "of C")
    if not is_lua and not debug.getupvalue(value, 1) then
      -- Without upvalues, the address is that of the C code.
      add(path, format("%p", value))
    end
    local index = 1
    while debug.getupvalue(value, index) do
      local _, upvalue = debug.getupvalue(value, index)
      local cell = is_lua and debug.upvalueid(value, index)
      local item = path .. " upvalue " .. index
      add(item, named(upvalue, item), cell and named(cell, item) or "")
      index = index + 1
    end
  end

  local function walk_thread(value, path)
    add(path, tostring(debug.gethook(value)), debug.traceback(value))
  end

  named(debug.getregistry(), "registry")
  for _, sample in next, { "", 0, true, print } do
    local path = "metatable of " .. type(sample)
    add(path, named(debug.getmetatable(sample), path))
  end
  local index = 1
  while found[index] do
    local value, path = found[index], index .. "=" .. paths[index]
    local kind = type(value)
    if not ignored[value] then
      -- An upvalue's id is a light userdata, of which all share a metatable.
      local metatable = debug.getmetatable(value)
      add(path, "metatable", named(metatable, path .. " metatable"))
      if kind == "table" then
        walk_table(value, path)
      elseif kind == "function" then
        walk_function(value, path)
      elseif kind == "thread" then
        walk_thread(value, path)
      end
    end
    index = index + 1
  end
  return concat(lines, "\n")
end
