-- The part of msgpack that host calls need: nil, booleans, numbers, strings, lists, and maps with
-- string keys.
local private = ...
local error, math_type, next, pcall, rawlen, type = error, math.type, next, pcall, rawlen, type
local byte, concat, format, pack, sub, unpack =
  string.byte, table.concat, string.format, string.pack, string.sub, string.unpack

local MAX_DEPTH = 16

-- Raised through pcall; `problem` describes it.
local failure = {}
local problem

local function fail(what)
  problem = what
  error(failure, 0)
end

local write

local function write_table(value, pieces, depth)
  if depth > MAX_DEPTH then
    fail(format("nested deeper than %d levels", MAX_DEPTH))
  end
  local size = rawlen(value)
  if size > 0 then
    pieces[#pieces + 1] = pack(">BI4", 0xDD, size)
    for index = 1, size do
      write(value[index], pieces, depth)
    end
    return
  end
  local count = 0
  for _ in next, value do
    count = count + 1
  end
  pieces[#pieces + 1] = pack(">BI4", 0xDF, count)
  for key, item in next, value do
    write(key, pieces, depth)
    write(item, pieces, depth)
  end
end

function write(value, pieces, depth)
  local kind = type(value)
  if kind == "string" then
    pieces[#pieces + 1] = pack(">Bs4", 0xC6, value)
  elseif kind == "nil" then
    pieces[#pieces + 1] = "\xC0"
  elseif kind == "boolean" then
    pieces[#pieces + 1] = value and "\xC3" or "\xC2"
  elseif kind == "number" then
    local is_integer = math_type(value) == "integer"
    pieces[#pieces + 1] = is_integer and pack(">Bi8", 0xD3, value) or pack(">Bd", 0xCB, value)
  elseif kind == "table" then
    write_table(value, pieces, depth + 1)
  else
    fail("a " .. kind .. " cannot be passed")
  end
end

local function write_list(values, count)
  local pieces = { pack(">BI4", 0xDD, count) }
  for index = 1, count do
    write(values[index], pieces, 0)
  end
  return concat(pieces)
end

-- Returns the first `count` values as a packed list; or nil and the reason why that is impossible.
function private.pack_list(values, count)
  local ok, packed = pcall(write_list, values, count)
  if ok then
    return packed
  elseif packed == failure then
    return nil, problem
  end
  error(packed, 0)
end

local read

local function read_string(data, position, size)
  return sub(data, position, position + size - 1), position + size
end

local function read_list(data, position, size)
  local list = {}
  for index = 1, size do
    list[index], position = read(data, position)
  end
  return list, position
end

local function read_map(data, position, size)
  local map, key = {}, nil
  for _ = 1, size do
    key, position = read(data, position)
    map[key], position = read(data, position)
  end
  return map, position
end

-- By first byte: the format of a number, or of a length with the reader of what follows.
local numbers = {
  [0xCA] = ">f",
  [0xCB] = ">d",
  [0xCC] = ">I1",
  [0xCD] = ">I2",
  [0xCE] = ">I4",
  [0xCF] = ">I8",
  [0xD0] = ">i1",
  [0xD1] = ">i2",
  [0xD2] = ">i4",
  [0xD3] = ">i8",
}
local sized = {
  [0xC4] = { ">I1", read_string },
  [0xC5] = { ">I2", read_string },
  [0xC6] = { ">I4", read_string },
  [0xD9] = { ">I1", read_string },
  [0xDA] = { ">I2", read_string },
  [0xDB] = { ">I4", read_string },
  [0xDC] = { ">I2", read_list },
  [0xDD] = { ">I4", read_list },
  [0xDE] = { ">I2", read_map },
  [0xDF] = { ">I4", read_map },
}

function read(data, position)
  local tag = byte(data, position)
  position = position + 1
  if tag < 0x80 then
    return tag, position
  elseif tag < 0x90 then
    return read_map(data, position, tag - 0x80)
  elseif tag < 0xA0 then
    return read_list(data, position, tag - 0x90)
  elseif tag < 0xC0 then
    return read_string(data, position, tag - 0xA0)
  elseif tag >= 0xE0 then
    return tag - 0x100, position
  elseif tag == 0xC0 then
    return nil, position
  elseif tag == 0xC2 or tag == 0xC3 then
    return tag == 0xC3, position
  elseif numbers[tag] then
    return unpack(numbers[tag], data, position)
  end
  local entry, size = sized[tag], nil
  size, position = unpack(entry[1], data, position)
  return entry[2](data, position, size)
end

function private.unpack_value(data)
  return (read(data, 1))
end
