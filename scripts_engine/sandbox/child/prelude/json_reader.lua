-- null, and FromJson: strict RFC 8259.
-- No code of the script runs meanwhile, so the state of the reader may be in upvalues.
local private = ...
local byte, find, format, match, sub =
  string.byte, string.find, string.format, string.match, string.sub
local concat = table.concat
local huge, math_type = math.huge, math.type
local utf8_char, utf8_len = utf8.char, utf8.len
local error, pcall, setmetatable, tonumber = error, pcall, setmetatable, tonumber
local expect, array_mark, object_mark = private.expect, private.array_mark, private.object_mark
local load_chunk = private.load_chunk

null = setmetatable({}, private.null_metatable)
private.null = null
local null = null
-- The maximum nesting of arrays and objects, both read and written.
private.json_depth = 128

-- Raised through pcall; `problem` and `problem_position` describe it.
local failure = {}
local problem, problem_position

local text, length, has_escapes, has_controls, max_depth

local function fail(position, what)
  problem, problem_position = what, position
  error(failure, 0)
end

local function unexpected(position)
  fail(position, load_chunk("unexpected_in_json")(text, length, position))
end

local escapes = {
  [34] = '"',
  [47] = "/",
  [92] = "\\",
  [98] = "\b",
  [102] = "\f",
  [110] = "\n",
  [114] = "\r",
  [116] = "\t",
}

local function read_escaped_string(position)
  local pieces, count, start = {}, 0, position
  while true do
    local at = find(text, '["\\\0-\31]', position)
    if at > length then
      fail(at, "unterminated string")
    end
    local code = byte(text, at)
    count = count + 1
    pieces[count] = sub(text, start, at - 1)
    if code == 34 then
      return concat(pieces), at + 1
    elseif code ~= 92 then
      fail(at, "control character in a string")
    end
    local kind = byte(text, at + 1)
    count = count + 1
    if escapes[kind] then
      pieces[count] = escapes[kind]
      position = at + 2
    elseif kind == 117 then
      local digits = match(text, "^%x%x%x%x", at + 2)
      if not digits then
        fail(at, "\\u without four hexadecimal digits")
      end
      local point = tonumber(digits, 16)
      position = at + 6
      if point >= 0xD800 and point <= 0xDFFF then
        local low = point <= 0xDBFF and match(text, "^\\u([dD][c-fC-F]%x%x)", position)
        if not low then
          fail(at, "lone surrogate in a string")
        end
        point = 0x10000 + ((point - 0xD800) << 10) + (tonumber(low, 16) - 0xDC00)
        position = position + 6
      end
      pieces[count] = utf8_char(point)
    else
      fail(at, "unknown escape in a string")
    end
    start = position
  end
end

-- Reads from after the opening quote; returns the string and the position after the closing one.
local function read_string(position)
  local stop = find(text, '"', position, true)
  if not stop then
    return read_escaped_string(position)
  end
  local value = sub(text, position, stop - 1)
  if has_escapes and find(value, "\\", 1, true) or has_controls and find(value, "[\0-\31]") then
    return read_escaped_string(position)
  end
  return value, stop + 1
end

local function read_number(position)
  local digits, stop = match(text, "^(-?%d+)()", position)
  if not digits then
    unexpected(byte(text, position) == 45 and position + 1 or position)
  end
  if #digits > 1 and match(digits, "^-?0%d") then
    fail(position, "number with a leading zero")
  end
  local code = byte(text, stop)
  if code ~= 46 and code ~= 101 and code ~= 69 then
    local value = tonumber(digits)
    if math_type(value) ~= "integer" then
      fail(position, "integer out of the 64-bit range")
    end
    return value, stop
  end
  if code == 46 then
    stop = match(text, "^%d+()", stop + 1) or unexpected(stop + 1)
    code = byte(text, stop)
  end
  if code == 101 or code == 69 then
    stop = match(text, "^[+-]?%d+()", stop + 1) or fail(position, "number with a broken exponent")
  end
  local value = tonumber(sub(text, position, stop - 1))
  if value == huge or value == -huge then
    fail(position, "number out of range")
  end
  return value, stop
end

local read_value

local function read_array(position, depth)
  if depth > max_depth then
    fail(position - 1, format("nested deeper than %d levels", max_depth))
  end
  local array, count = setmetatable({}, array_mark), 0
  local code = byte(text, position)
  if code <= 32 then
    position = find(text, "[^ \n\r\t]", position)
    code = byte(text, position)
  end
  if code == 93 then
    return array, position + 1
  end
  while true do
    count = count + 1
    array[count], position = read_value(position, depth)
    code = byte(text, position)
    if code <= 32 then
      position = find(text, "[^ \n\r\t]", position)
      code = byte(text, position)
    end
    if code == 93 then
      return array, position + 1
    elseif code ~= 44 then
      unexpected(position)
    end
    position = position + 1
  end
end

local function read_object(position, depth)
  if depth > max_depth then
    fail(position - 1, format("nested deeper than %d levels", max_depth))
  end
  local object = setmetatable({}, object_mark)
  local code = byte(text, position)
  if code <= 32 then
    position = find(text, "[^ \n\r\t]", position)
    code = byte(text, position)
  end
  if code == 125 then
    return object, position + 1
  end
  local key
  while true do
    if code ~= 34 then
      unexpected(position)
    end
    key, position = read_string(position + 1)
    code = byte(text, position)
    if code <= 32 then
      position = find(text, "[^ \n\r\t]", position)
      code = byte(text, position)
    end
    if code ~= 58 then
      unexpected(position)
    end
    object[key], position = read_value(position + 1, depth)
    code = byte(text, position)
    if code <= 32 then
      position = find(text, "[^ \n\r\t]", position)
      code = byte(text, position)
    end
    if code == 125 then
      return object, position + 1
    elseif code ~= 44 then
      unexpected(position)
    end
    position = position + 1
    code = byte(text, position)
    if code <= 32 then
      position = find(text, "[^ \n\r\t]", position)
      code = byte(text, position)
    end
  end
end

-- Returns the next value from `position` on, and the position after it.
function read_value(position, depth)
  local code = byte(text, position)
  if code <= 32 then
    position = find(text, "[^ \n\r\t]", position)
    code = byte(text, position)
  end
  if code == 34 then
    return read_string(position + 1)
  elseif code == 123 then
    return read_object(position + 1, depth + 1)
  elseif code == 91 then
    return read_array(position + 1, depth + 1)
  elseif code == 45 or code >= 48 and code <= 57 then
    return read_number(position)
  elseif code == 116 and sub(text, position, position + 3) == "true" then
    return true, position + 4
  elseif code == 102 and sub(text, position, position + 4) == "false" then
    return false, position + 5
  elseif code == 110 and sub(text, position, position + 3) == "null" then
    return null, position + 4
  end
  unexpected(position)
end

local function read_document(source)
  -- The zero byte at the end stops every search, so that no step has to check for the end.
  text, length = source .. "\0", #source
  local count, invalid_at = utf8_len(source)
  if not count then
    fail(invalid_at, "invalid UTF-8")
  end
  if sub(source, 1, 3) == "\xEF\xBB\xBF" then
    fail(1, "unexpected byte order mark")
  end
  has_escapes = find(source, "\\", 1, true) ~= nil
  has_controls = find(source, "[\0-\31]") ~= nil
  max_depth = private.json_depth
  local value, position = read_value(1, 0)
  position = find(text, "[^ \n\r\t]", position)
  if position <= length then
    unexpected(position)
  end
  return value
end

local function from_json(source, name, level)
  local ok, value = pcall(read_document, source)
  text = nil
  if ok then
    return value
  elseif value ~= failure then
    error(value, 0)
  end
  local place = load_chunk("place_in_json")(source, problem_position)
  error(format("%s: %s at %s", name, problem, place), level + 1)
end

private.from_json = from_json

function FromJson(source)
  expect("string", source, "FromJson")
  -- Not a tail call, since the level counts this frame.
  local value = from_json(source, "FromJson", 2)
  return value
end
