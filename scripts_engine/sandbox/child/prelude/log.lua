-- print and log.*: write lines to the run's log, up to its limits.
local private = ...
local call_python = private.call_python
local concat, pack, sub = table.concat, table.pack, string.sub
local table_in_log, tostring, type = private.table_in_log, tostring, type

local DEBUG, INFO, WARN, ERROR = 0, 1, 2, 3
local max_bytes, max_lines, bytes_left, lines_left
local is_cut = false

function private.start_log(most_bytes, most_lines)
  max_bytes, max_lines = most_bytes, most_lines
  bytes_left, lines_left = most_bytes, most_lines
end

-- Notes in the log that the limit of bytes or lines was reached.
local function cut(unit, limit)
  is_cut = true
  call_python("log.cut", WARN, unit, limit)
end

local function write(level, text)
  if is_cut then
    return
  elseif lines_left == 0 then
    return cut("lines", max_lines)
  end
  local has_room = #text <= bytes_left
  call_python("log", level, has_room and text or sub(text, 1, bytes_left))
  if not has_room then
    return cut("bytes", max_bytes)
  end
  bytes_left = bytes_left - #text
  lines_left = lines_left - 1
end

function private.warn(text)
  write(WARN, text)
end

local function writer(level, text_of_table)
  return function(...)
    if is_cut then
      return
    end
    local texts = pack(...)
    for index = 1, texts.n do
      local value = texts[index]
      texts[index] = (type(value) == "table" and text_of_table or tostring)(value)
    end
    write(level, concat(texts, "\t"))
  end
end

-- As in Lua, where a table is only named by its type.
print = writer(INFO, tostring)
log.debug = writer(DEBUG, table_in_log)
log.info = writer(INFO, table_in_log)
log.warn = writer(WARN, table_in_log)
log.error = writer(ERROR, table_in_log)
