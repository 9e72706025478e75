-- ToJson. All access is raw, so no metamethod of the script runs meanwhile, and the state of the
-- writer may be in upvalues.
local private = ...
local byte, find, format, gsub, rep, sub =
  string.byte, string.find, string.format, string.gsub, string.rep, string.sub
local concat, sort = table.concat, table.sort
local huge, math_type, utf8_len = math.huge, math.type, utf8.len
local error, next, pcall, rawequal, rawlen = error, next, pcall, rawequal, rawlen
local tonumber, type = tonumber, type
local getmetatable = private.debug.getmetatable
local expect, array_mark, object_mark = private.expect, private.array_mark, private.object_mark
local load_chunk, null = private.load_chunk, private.null

local MAX_BYTES = 16 * 1024 * 1024
local PIECES_PER_FLUSH = 4096

private.utf8_len = utf8_len

-- Raised through pcall; `problem` describes the first.
local failure, too_large = {}, {}
local problem

local pieces, count, chunks, bytes, max_bytes, pretty
local keys_above = {} -- by depth, to name the place of a value in an error
local tables_above = {} -- by depth, to tell a cycle from deep nesting

local function put(piece)
  bytes = bytes + #piece
  if bytes > max_bytes then
    error(too_large, 0)
  end
  count = count + 1
  pieces[count] = piece
  if count == PIECES_PER_FLUSH then
    chunks[#chunks + 1] = concat(pieces, "", 1, count)
    count = 0
  end
end

local function refuse(what, depth)
  problem = load_chunk("with_path_in_json")(what, keys_above, depth)
  error(failure, 0)
end

-- Without a table, which would have to be created in every state.
local function escape(character)
  local code = byte(character)
  if code >= 32 then
    return "\\" .. character
  elseif code >= 8 and code <= 13 and code ~= 11 then
    return "\\" .. sub("btn fr", code - 7, code - 7)
  end
  return format("\\u%04x", code)
end

local function quote(value, depth)
  if find(value, '["\\\0-\31\128-\255]') then
    if not utf8_len(value) then
      refuse("a string is not valid UTF-8", depth)
    end
    value = gsub(value, '["\\\0-\31]', escape)
  end
  return '"' .. value .. '"'
end

local function number_text(value, depth)
  if math_type(value) == "integer" then
    return format("%d", value)
  elseif value ~= value then
    refuse("NaN has no JSON form", depth)
  elseif value == huge or value == -huge then
    refuse("infinity has no JSON form", depth)
  end
  -- Start at 15 digits for a normal number, since %g drops trailing zeros anyway.
  local digits = (value < 2.3e-308 and value > -2.3e-308) and 1 or 15
  local written
  repeat
    written = format("%." .. digits .. "g", value)
    digits = digits + 1
  until tonumber(written) + 0.0 == value
  -- A float stays a float when it is read again.
  return find(written, "[.e]") and written or written .. ".0"
end

local write_value

local function write_array(array, size, depth)
  if size == 0 then
    return put("[]")
  end
  local separator, ending = ",", "]"
  if pretty then
    separator = ",\n" .. rep("  ", depth)
    ending = "\n" .. rep("  ", depth - 1) .. "]"
    put("[" .. sub(separator, 2))
  else
    put("[")
  end
  for index = 1, size do
    if index > 1 then
      put(separator)
    end
    keys_above[depth] = index
    write_value(array[index], depth)
  end
  put(ending)
end

local function write_object(object, keys, depth)
  if #keys == 0 then
    return put("{}")
  end
  sort(keys)
  local separator, ending, colon = ",", "}", ":"
  if pretty then
    separator = ",\n" .. rep("  ", depth)
    ending = "\n" .. rep("  ", depth - 1) .. "}"
    colon = ": "
    put("{" .. sub(separator, 2))
  else
    put("{")
  end
  for index = 1, #keys do
    if index > 1 then
      put(separator)
    end
    local key = keys[index]
    keys_above[depth] = key
    put(quote(key, depth) .. colon)
    write_value(object[key], depth)
  end
  put(ending)
end

local function write_table(value, depth)
  if depth > private.json_depth then
    for level = 1, depth - 1 do
      if rawequal(tables_above[level], value) then
        refuse("a table holds itself", depth - 1)
      end
    end
    refuse(format("nested deeper than %d levels", private.json_depth), depth - 1)
  end
  tables_above[depth] = value
  local mark = getmetatable(value)
  local size = rawlen(value)
  -- Copy the values with raw access, so that no metamethod of the script is called.
  if rawequal(mark, array_mark) or size > 0 and not rawequal(mark, object_mark) then
    local array, found = {}, 0
    for key, item in next, value do
      if math_type(key) ~= "integer" or key < 1 or key > size then
        if type(key) == "string" then
          refuse("an array has the key " .. format("%q", key), depth - 1)
        end
        refuse("an array has gaps or other keys than 1, 2, 3, …", depth - 1)
      end
      array[key] = item
      found = found + 1
    end
    if found ~= size then
      refuse("an array has gaps", depth - 1)
    end
    return write_array(array, size, depth)
  end
  local object, keys, found = {}, {}, 0
  for key, item in next, value do
    if type(key) ~= "string" then
      refuse("an object has a key that is a " .. type(key), depth - 1)
    end
    found = found + 1
    keys[found] = key
    object[key] = item
  end
  if found == 0 and not rawequal(mark, object_mark) then
    return put("[]")
  end
  return write_object(object, keys, depth)
end

function write_value(value, depth)
  local kind = type(value)
  if kind == "string" then
    put(quote(value, depth))
  elseif kind == "number" then
    put(number_text(value, depth))
  elseif kind == "table" then
    if rawequal(value, null) then
      put("null")
    else
      write_table(value, depth + 1)
    end
  elseif kind == "boolean" then
    put(value and "true" or "false")
  elseif kind == "nil" then
    put("null")
  else
    refuse("a " .. kind .. " has no JSON form", depth)
  end
end

local function write_document(value)
  write_value(value, 0)
  chunks[#chunks + 1] = concat(pieces, "", 1, count)
  return concat(chunks)
end

-- Returns the text; or nil and the problem; or nil and nil if the text is over `limit` bytes.
function private.try_to_json(value, limit, is_pretty)
  pieces, count, chunks, bytes, max_bytes, pretty = {}, 0, {}, 0, limit, is_pretty
  local ok, written = pcall(write_document, value)
  pieces, chunks, tables_above = nil, nil, {}
  if ok then
    return written
  elseif written == failure then
    return nil, problem
  elseif written == too_large then
    return nil, nil
  end
  error(written, 0)
end

function ToJson(value, options)
  local is_pretty = false
  if options ~= nil then
    expect("table", options, "ToJson: options")
    is_pretty = options.pretty and true or false
  end
  local written, what = private.try_to_json(value, MAX_BYTES, is_pretty)
  if written then
    return written
  end
  error("ToJson: " .. (what or "the text is over 16 MiB"), 2)
end
