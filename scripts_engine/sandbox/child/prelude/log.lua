-- print and log.*: write lines to the run's log, up to its limits.
local private = ...
local call_python = private.call_python
local concat, pack, sub, tostring = table.concat, table.pack, string.sub, tostring

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

local function writer(level)
  return function(...)
    if is_cut then
      return
    end
    local texts = pack(...)
    for index = 1, texts.n do
      texts[index] = tostring(texts[index])
    end
    write(level, concat(texts, "\t"))
  end
end

print = writer(INFO)
log = {
  debug = writer(DEBUG),
  info = writer(INFO),
  warn = writer(WARN),
  error = writer(ERROR),
}
