-- What is wrong in a JSON text, or with a value, and where.
local private = ...
local byte, format, gsub, match, sub =
  string.byte, string.format, string.gsub, string.match, string.sub
local concat, select, tostring, type = table.concat, select, tostring, type
local functions, utf8_len = private.functions, private.utf8_len

local MAX_PATH_KEYS = 16

function functions.unexpected_in_json(text, length, position)
  if position > length then
    return "unexpected end"
  end
  local character = match(text, "^[%g ][\128-\191]*", position)
    or match(text, "^[\194-\244][\128-\191]+", position)
  if character then
    return "unexpected '" .. character .. "'"
  end
  return format("unexpected byte 0x%02X", byte(text, position))
end

function functions.place_in_json(source, position)
  local before = sub(source, 1, position - 1)
  local line = select(2, gsub(before, "\n", "")) + 1
  local line_start = match(before, "^.*\n()") or 1
  local column = utf8_len(before, line_start) or #before - line_start + 1
  return format("line %d column %d", line, column + 1)
end

-- Takes the keys that lead to a value, by depth.
function functions.with_path_in_json(what, keys, depth)
  local path = {}
  for level = 1, depth do
    local key = keys[level]
    if type(key) == "string" then
      path[#path + 1] = (level > 1 and "." or "") .. key
    else
      path[#path + 1] = "[" .. tostring(key) .. "]"
    end
    if level == MAX_PATH_KEYS and depth > MAX_PATH_KEYS then
      path[#path + 1] = "…"
      break
    end
  end
  return depth == 0 and what or what .. " (at " .. concat(path) .. ")"
end
