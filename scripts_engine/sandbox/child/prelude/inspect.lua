-- inspect, and the text of a table in the log. All access is raw, so no metamethod of the script
-- runs meanwhile, and the state of the writer may be in upvalues.
local private = ...
local getmetatable = private.debug.getmetatable
local functions, null, try_to_json = private.functions, private.null, private.try_to_json
local byte, find, format, gsub, sub =
  string.byte, string.find, string.format, string.gsub, string.sub
local concat, sort = table.concat, table.sort
local huge, math_type, utf8_len = math.huge, math.type, private.utf8_len
local error, next, pcall, rawequal, rawget, rawlen =
  error, next, pcall, rawequal, rawget, rawlen
local tostring, type = tostring, type

local MAX_BYTES = 64 * 1024
local MAX_DEPTH = 8
-- Of one table: the items shown, and the keys that are sorted.
local MAX_ITEMS, MAX_SORTED_KEYS = 1000, 10000
-- The longest JSON in a line of the log, which is cut at the limit of the log.
local MAX_JSON_BYTES = 1024 * 1024

-- Raised through pcall when the text is full.
local full = {}

local pieces, count, room
local open -- The tables that are being written, to recognise cycles.

-- Drops a character of UTF-8 at the end, which a cut may have left incomplete.
local function without_last_character(text)
  for back = 0, 3 do
    local code = byte(text, #text - back)
    if not code or code < 128 then
      break
    elseif code >= 192 then
      return sub(text, 1, #text - back - 1)
    end
  end
  return text
end

local function put(piece)
  count = count + 1
  if #piece > room then
    pieces[count] = without_last_character(sub(piece, 1, room)) .. "…"
    error(full, 0)
  end
  pieces[count] = piece
  room = room - #piece
end

local written_escapes = {
  ['"'] = '\\"',
  ["\\"] = "\\\\",
  ["\n"] = "\\n",
  ["\r"] = "\\r",
  ["\t"] = "\\t",
}

local function escape(character)
  return written_escapes[character] or format("\\x%02x", byte(character))
end

local function quote(text)
  if #text > room then
    -- Longer than the rest of the room by a byte, so that `put` marks the cut.
    text = without_last_character(sub(text, 1, room + 4))
  end
  local unsafe = utf8_len(text) and '["\\%c]' or '["\\%c\128-\255]'
  return '"' .. gsub(text, unsafe, escape) .. '"'
end

local function number_text(value)
  if math_type(value) == "integer" then
    return format("%d", value)
  elseif value ~= value then
    return "nan"
  elseif value == huge or value == -huge then
    return value > 0 and "inf" or "-inf"
  end
  return tostring(value)
end

local function key_text(key)
  if type(key) == "string" then
    return find(key, "^[%a_][%w_]*$") and key or "[" .. quote(key) .. "]"
  elseif type(key) == "number" then
    return "[" .. number_text(key) .. "]"
  elseif type(key) == "boolean" then
    return "[" .. tostring(key) .. "]"
  end
  return "[" .. type(key) .. "]"
end

local ranks = { number = 1, string = 2, boolean = 3 }

local function comes_first(a, b)
  local kind, other = type(a), type(b)
  if kind ~= other then
    local rank, other_rank = ranks[kind] or 4, ranks[other] or 4
    return rank < other_rank or rank == other_rank and kind < other
  elseif kind == "number" or kind == "string" then
    return a < b
  end
  return kind == "boolean" and not a and b
end

-- Returns the keys outside the sequence, sorted, and how many there are.
local function other_keys(value, size)
  local keys, found = {}, 0
  for key in next, value do
    if math_type(key) ~= "integer" or key < 1 or key > size then
      found = found + 1
      if found <= MAX_SORTED_KEYS then
        keys[found] = key
      end
    end
  end
  sort(keys, comes_first)
  return keys, found
end

local put_value

local function put_items(value, size, keys, found, indent)
  local shown = 0
  for index = 1, size do
    if shown == MAX_ITEMS then
      break
    end
    shown = shown + 1
    put(indent)
    put_value(rawget(value, index), indent)
    put(",")
  end
  for index = 1, #keys do
    if shown == MAX_ITEMS then
      break
    end
    shown = shown + 1
    put(indent .. key_text(keys[index]) .. " = ")
    put_value(rawget(value, keys[index]), indent)
    put(",")
  end
  if shown < size + found then
    put(format("%s… %d more", indent, size + found - shown))
  end
end

local function put_table(value, indent)
  local depth = (#indent - 1) // 2
  if open[value] then
    return put("<cycle>")
  elseif next(value) == nil then
    return put("{}")
  elseif depth == MAX_DEPTH then
    return put("{…}")
  end
  open[value] = true
  local size = rawlen(value)
  local keys, found = other_keys(value, size)
  put("{")
  put_items(value, size, keys, found, indent .. "  ")
  put(indent .. "}")
  open[value] = nil
end

function put_value(value, indent)
  local kind = type(value)
  if kind == "string" then
    put(quote(value))
  elseif kind == "number" then
    put(number_text(value))
  elseif rawequal(value, null) then
    put("null")
  elseif kind == "table" then
    put_table(value, indent)
  elseif kind == "nil" or kind == "boolean" then
    put(tostring(value))
  else
    -- Of these, Lua's own text holds an address.
    put(kind)
  end
end

local function inspect(value)
  pieces, count, room, open = {}, 0, MAX_BYTES, {}
  local ok, problem = pcall(put_value, value, "\n")
  local written = pieces
  pieces, open = nil, nil
  if ok or problem == full then
    return concat(written)
  end
  error(problem, 0)
end

functions.inspect = inspect

functions.table_in_log = function(value)
  local metatable = getmetatable(value)
  if metatable and (rawget(metatable, "__tostring") ~= nil or rawget(metatable, "__name") ~= nil) then
    -- The script chose a text.
    return tostring(value)
  end
  return try_to_json(value, MAX_JSON_BYTES, false) or inspect(value)
end
