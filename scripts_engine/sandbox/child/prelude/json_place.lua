-- The line and the column of an error in a JSON text.
local private = ...
local format, gsub, match, select, sub = string.format, string.gsub, string.match, select, string.sub
local utf8_len = private.utf8_len

function private.functions.place_in_json(source, position)
  local before = sub(source, 1, position - 1)
  local line = select(2, gsub(before, "\n", "")) + 1
  local line_start = match(before, "^.*\n()") or 1
  local column = utf8_len(before, line_start) or #before - line_start + 1
  return format("line %d column %d", line, column + 1)
end
