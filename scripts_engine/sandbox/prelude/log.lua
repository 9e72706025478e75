-- print and log.*: lines for the run's log, until one of its limits is reached.
local private = ...
local call_python = private.call_python
local concat, pack, sub, tostring = table.concat, table.pack, string.sub, tostring

local DEBUG, INFO, WARN, ERROR = 0, 1, 2, 3
local bytes_left, lines_left, notice_bytes, notice_lines
local is_cut = false

function private.start_log(max_bytes, max_lines, bytes_in_words, lines_in_words)
  bytes_left, lines_left = max_bytes, max_lines
  notice_bytes = "the log is cut here: over " .. bytes_in_words
  notice_lines = "the log is cut here: over " .. lines_in_words .. " lines"
end

local function cut(notice)
  is_cut = true
  call_python("log", WARN, notice)
end

local function write(level, text)
  if is_cut then
    return
  elseif lines_left == 0 then
    return cut(notice_lines)
  end
  local has_room = #text <= bytes_left
  call_python("log", level, has_room and text or sub(text, 1, bytes_left))
  if not has_room then
    return cut(notice_bytes)
  end
  bytes_left = bytes_left - #text
  lines_left = lines_left - 1
end

private.write_log = write
private.WARN = WARN

local function write_all(level, ...)
  if is_cut then
    return
  end
  local texts = pack(...)
  for index = 1, texts.n do
    texts[index] = tostring(texts[index])
  end
  write(level, concat(texts, "\t"))
end

function print(...)
  write_all(INFO, ...)
end

log = {
  debug = function(...)
    write_all(DEBUG, ...)
  end,
  info = function(...)
    write_all(INFO, ...)
  end,
  warn = function(...)
    write_all(WARN, ...)
  end,
  error = function(...)
    write_all(ERROR, ...)
  end,
}
