-- Runs a script and turns whatever happens into plain values for Python.
local private = ...
local debug, finish, load = private.debug, private.finish, private.load
local find, gmatch, gsub, match, sub =
  string.find, string.gmatch, string.gsub, string.match, string.sub
local concat, getinfo, traceback = table.concat, debug.getinfo, debug.traceback
local pcall, tonumber, tostring, type, xpcall = pcall, tonumber, tostring, type, xpcall
local try_to_json = private.try_to_json

local MAX_MESSAGE_BYTES = 4096

-- Lua's own messages begin with the name of the chunk, cut to what it prints of one.
local chunk_source, message_prefix

local function name_chunk(chunk_name)
  chunk_source = "=" .. chunk_name
  message_prefix = sub(chunk_name, 1, 59) .. ":"
end

local function line_of_message(message)
  if type(message) == "string" and sub(message, 1, #message_prefix) == message_prefix then
    return tonumber((match(message, "^%d+", #message_prefix + 1)))
  end
end

local function line_of_stack()
  local level = 2
  local info = getinfo(level, "Sl")
  while info do
    if info.source == chunk_source and info.currentline > 0 then
      return info.currentline
    end
    level = level + 1
    info = getinfo(level, "Sl")
  end
end

-- The frames of the platform ("?" without a line, and what calls the script) mean nothing to
-- the reader.
local function script_traceback()
  local kept = {}
  for line in gmatch(traceback("", 2), "[^\n]+") do
    if not find(line, "^\t%?: ") and not find(line, "^\t%(%.%.%.tail") then
      kept[#kept + 1] = line
    end
  end
  if find(kept[#kept], "in function 'xpcall'", 1, true) then
    kept[#kept] = nil
  end
  kept[#kept] = gsub(kept[#kept], "in upvalue '%?'$", "in main chunk")
  return concat(kept, "\n")
end

local function message_of(problem)
  if type(problem) == "table" then
    local ok, text = pcall(tostring, problem)
    if ok and text ~= "table" then
      return text
    end
    return try_to_json(problem, MAX_MESSAGE_BYTES, false) or "an error object"
  end
  return tostring(problem)
end

local function finish_failed(problem, line, stack)
  if problem == "not enough memory" then
    return "out-of-memory"
  end
  return "failed", sub(message_of(problem), 1, MAX_MESSAGE_BYTES), line, stack
end

local function compile(source, chunk_name)
  name_chunk(chunk_name)
  local chunk, problem = load(source, chunk_source, "t")
  if chunk then
    return chunk
  end
  return nil, problem, line_of_message(problem)
end

-- Returns nil when the source compiles, else the message, its line and no traceback.
function private.check_syntax(source, chunk_name)
  local _, problem, line = compile(source, chunk_name)
  return problem, line, ""
end

-- Returns a kind of outcome and what belongs to it:
--   "succeeded", status, body, then name and value of each header
--   "failed", message, line or nil, traceback
--   "out-of-memory" or "reply-too-large"
function private.run(
  source,
  chunk_name,
  is_traced,
  memory_bytes,
  reply_bytes,
  json_depth,
  log_bytes,
  log_lines,
  log_bytes_in_words,
  log_lines_in_words
)
  private.memory_bytes = memory_bytes
  private.json_depth = json_depth
  private.limit_reply(reply_bytes)
  private.start_log(log_bytes, log_lines, log_bytes_in_words, log_lines_in_words)
  local chunk, problem, problem_line = compile(source, chunk_name)
  if not chunk then
    return finish_failed(problem, problem_line, "")
  end
  local line, stack = nil, ""
  local function on_error(raised)
    line = line_of_message(raised) or line_of_stack()
    stack = script_traceback()
    return raised
  end
  local function run_chunk()
    return finish(chunk())
  end
  local function conclude(ok, ...)
    if ok then
      return ...
    end
    return finish_failed((...), line, stack)
  end
  if is_traced then
    private.load_chunk("trace")
    private.start_trace(chunk_source)
  end
  return conclude(xpcall(run_chunk, on_error))
end
