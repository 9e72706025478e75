-- Lists a script's uses of globals that look like mistakes, from the compiler's own output: the
-- compiler has resolved every scope, so a name that is still a global here is one at run time.
-- The source is compiled and never run. Formats: ldump.c and lopcodes.h of Lua 5.4.
local private = ...
local dump, load = private.dump, private.load
local byte, find, lower, sub, unpack =
  string.byte, string.find, string.lower, string.sub, string.unpack
local concat, sort, unpack_table = table.concat, table.sort, table.unpack
local next, rawget = next, rawget
local provided_names = private.environment

local MAX_LISTED = 50
local MAX_NAME_BYTES = 64
-- Names that a suggestion is chosen from, and the lengths worth comparing.
local MAX_CANDIDATES = 1000
local MIN_COMPARED_BYTES, MAX_COMPARED_BYTES = 3, 24

-- Signature, version, format, test bytes, and the sizes of instruction, integer and number.
local HEADER = "\27Lua\x54\0\x19\x93\r\n\x1a\n\4\8\8"
-- The header ends with an integer, a number and the count of upvalues.
local HEADER_BYTES = #HEADER + 17

local SHORT_STRING, LONG_STRING, INTEGER, FLOAT = 0x04, 0x14, 0x03, 0x13
local LOADK, LOADKX, GETUPVAL, SETUPVAL, GETTABUP, GETTABLE, SETTABUP, SETTABLE, CLOSURE =
  3, 4, 9, 10, 11, 12, 15, 16, 79
local LINE_IS_ABSOLUTE = -128

local function reader(bytes, position)
  local function number()
    local value = 0
    while true do
      local each = byte(bytes, position)
      position = position + 1
      value = value << 7 | each & 0x7f
      if each & 0x80 ~= 0 then
        return value
      end
    end
  end

  local function skip(count)
    position = position + count
  end

  local function text()
    local size = number()
    if size == 0 then
      return nil
    end
    position = position + size - 1
    return sub(bytes, position - size + 1, position - 1)
  end

  local function raw(size)
    position = position + size
    return sub(bytes, position - size, position - 1)
  end

  return { number = number, skip = skip, text = text, raw = raw }
end

-- The strings among the constants, by index from 0.
local function read_constants(from)
  local strings = {}
  for index = 0, from.number() - 1 do
    local kind = byte(from.raw(1))
    if kind == SHORT_STRING or kind == LONG_STRING then
      strings[index] = from.text() or ""
    elseif kind == INTEGER or kind == FLOAT then
      from.skip(8)
    end
  end
  return strings
end

-- Which upvalues are the table of globals; `of_parent` are those of the enclosing function.
local function read_environments(from, of_parent)
  local environments = {}
  for index = 0, from.number() - 1 do
    local in_stack, number = byte(from.raw(3), 1, 2)
    environments[index] = of_parent == nil or (in_stack == 0 and of_parent[number])
  end
  return environments
end

-- A function that returns the line of each instruction, asked in order.
local function read_lines(from, first_line)
  local deltas = from.raw(from.number())
  local absolute = {}
  for index = 1, from.number() do
    from.number()
    absolute[index] = from.number()
  end
  local line, used = first_line, 0
  return function(instruction)
    local delta = unpack("b", deltas, instruction)
    if delta == LINE_IS_ABSOLUTE then
      used = used + 1
      line = absolute[used]
    else
      line = line + delta
    end
    return line
  end
end

local function read_locals(from, found)
  for _ = 1, from.number() do
    local name = from.text()
    if name and find(name, "^[%a_]") and not found.locals[name] then
      found.locals[name] = true
      found.own_names[#found.own_names + 1] = name
    end
    from.number()
    from.number()
  end
  for _ = 1, from.number() do
    from.text()
  end
end

local function add_read(found, name, line)
  found.reads[#found.reads + 1] = { name = name, line = line }
end

local function add_write(found, name, line, is_function_at_top)
  if not found.assigned[name] then
    found.assigned[name] = true
    found.own_names[#found.own_names + 1] = name
    if not is_function_at_top then
      found.writes[#found.writes + 1] = { name = name, line = line }
    end
  end
end

-- A global is read by GETTABUP and written by SETTABUP. If the name does not fit into these, with
-- more than 256 constants or a long name, the compiler first loads table and name into registers:
-- GETUPVAL, then LOADK, and later GETTABLE or SETTABLE of the same registers. Any other use of the
-- table of globals may define names that the compiler does not see.
local function walk_code(code, strings, environments, line_of, is_main, found)
  local names, name_registers = {}, {}
  local before, loaded_into
  for instruction = 1, #code // 4 do
    local word = unpack("=I4", code, 4 * instruction - 3)
    local operation, a, b, c = word & 0x7f, word >> 7 & 0xff, word >> 16 & 0xff, word >> 24
    local line = line_of(instruction)
    if loaded_into then
      local key
      if operation == LOADK then
        key = strings[word >> 15]
      elseif operation == LOADKX then
        key = strings[unpack("=I4", code, 4 * instruction + 1) >> 7]
      end
      if key then
        names[loaded_into], name_registers[loaded_into] = key, a
      else
        found.is_dynamic = true
      end
      loaded_into = nil
    elseif operation == GETUPVAL and environments[b] then
      loaded_into = a
    elseif operation == SETUPVAL and environments[b] then
      found.is_dynamic = true
    elseif operation == GETTABUP and environments[b] then
      add_read(found, strings[c], line)
    elseif operation == SETTABUP and environments[a] then
      add_write(found, strings[b], line, is_main and before == CLOSURE)
    elseif operation == GETTABLE and names[b] and name_registers[b] == c then
      add_read(found, names[b], line)
      names[b] = nil
    elseif operation == SETTABLE and names[a] and name_registers[a] == b then
      add_write(found, names[a], line, is_main and before == CLOSURE)
      names[a] = nil
    end
    before = operation
  end
  -- A table of globals that was loaded beside a string for another purpose.
  found.is_dynamic = found.is_dynamic or next(names) ~= nil
end

local function walk_function(from, parent, found)
  from.text()
  local first_line = from.number()
  from.number()
  from.skip(3)
  local code = from.raw(4 * from.number())
  local strings = read_constants(from)
  local environments = read_environments(from, parent)
  for _ = 1, from.number() do
    walk_function(from, environments, found)
  end
  local line_of = read_lines(from, first_line)
  read_locals(from, found)
  walk_code(code, strings, environments, line_of, parent == nil, found)
end

-- The name in lower case, and without each of its letters in turn. Two names that differ by one
-- letter, or by two letters in the other order, have one of these in common.
local function variants(name)
  local text = lower(name)
  local all = { text }
  for index = 1, #text do
    all[index + 1] = sub(text, 1, index - 1) .. sub(text, index + 1)
  end
  return all
end

local function is_comparable(name)
  return #name >= MIN_COMPARED_BYTES and #name <= MAX_COMPARED_BYTES
end

-- A function that returns the known name most like a given one, or "".
local function suggester(own_names)
  local by_variant, count = {}, 0
  local function add(name)
    if count < MAX_CANDIDATES and is_comparable(name) then
      count = count + 1
      for _, variant in next, variants(name) do
        by_variant[variant] = by_variant[variant] or name
      end
    end
  end
  local provided = {}
  for name in next, provided_names do
    provided[#provided + 1] = name
  end
  sort(provided)
  for _, name in next, provided do
    add(name)
  end
  for _, name in next, own_names do
    add(name)
  end
  return function(name)
    if is_comparable(name) then
      for _, variant in next, variants(name) do
        if by_variant[variant] then
          return by_variant[variant]
        end
      end
    end
    return ""
  end
end

local function by_line(one, other)
  if one.line ~= other.line then
    return one.line < other.line
  end
  return one.name < other.name
end

local function is_shown(name)
  return #name <= MAX_NAME_BYTES and find(name, "^[%a_][%w_]*$")
end

-- Flat, since Lua returns no tables to Python: kind, name, line and suggestion of each use.
local function listed(found)
  local uses, seen = {}, {}
  for _, read in next, found.reads do
    local name = read.name
    local mark = concat({ name, read.line }, " ")
    if not seen[mark] and not found.assigned[name] and is_shown(name) then
      if rawget(provided_names, name) == nil then
        seen[mark] = true
        uses[#uses + 1] = { kind = "undefined", name = name, line = read.line }
      end
    end
  end
  for _, write in next, found.writes do
    if is_shown(write.name) and rawget(provided_names, write.name) == nil then
      uses[#uses + 1] = { kind = "assigned", name = write.name, line = write.line }
    end
  end
  sort(uses, by_line)
  local suggest = suggester(found.own_names)
  local flat = {}
  for index = 1, #uses < MAX_LISTED and #uses or MAX_LISTED do
    local use = uses[index]
    local suggestion = ""
    if use.kind == "undefined" then
      suggestion = found.locals[use.name] and use.name or suggest(use.name)
    end
    flat[#flat + 1] = use.kind
    flat[#flat + 1] = use.name
    flat[#flat + 1] = use.line
    flat[#flat + 1] = suggestion
  end
  return flat
end

function private.functions.list_globals(source)
  local compiled = load(source, "=script", "t")
  local bytes = compiled and dump(compiled)
  if not bytes or sub(bytes, 1, #HEADER) ~= HEADER then
    return
  end
  local found =
    { reads = {}, writes = {}, assigned = {}, locals = {}, own_names = {}, is_dynamic = false }
  walk_function(reader(bytes, HEADER_BYTES + 1), nil, found)
  for _, read in next, found.reads do
    -- Through _G, a script may define names that the compiler does not see.
    found.is_dynamic = found.is_dynamic or read.name == "_G"
  end
  if not found.is_dynamic then
    local flat = listed(found)
    return unpack_table(flat, 1, #flat)
  end
end
