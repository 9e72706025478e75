-- Runs a script and returns its outcome to Python as plain values.
local private = ...
local debug, load = private.debug, private.load
local finish, limit_reply = private.finish, private.limit_reply
local load_chunk, start_log = private.load_chunk, private.start_log
local getinfo, traceback = debug.getinfo, debug.traceback
local collectgarbage, select, xpcall = private.collectgarbage, select, xpcall

-- Most scripts end before they have allocated this much, and so without a collection.
local KILOBYTES_BEFORE_COLLECTING = 256

-- Most of MEMORY_RESERVE_BYTES in runtime.py, the memory above the limit of the script.
local BYTES_OF_RESERVE = 240 * 1024

local function start_collecting()
  collectgarbage("restart")
  -- A negative step delays the first collection.
  collectgarbage("step", -KILOBYTES_BEFORE_COLLECTING)
end

local script, chunk_source
-- The line of the failure, and the stack as Lua prints it.
local line, stack

local function on_error(raised)
  stack = traceback("", 1)
  local level = 2
  local info = getinfo(level, "Sl")
  while info do
    if info.source == chunk_source and info.currentline > 0 then
      line = info.currentline
      break
    end
    level = level + 1
    info = getinfo(level, "Sl")
  end
  return raised
end

local function run_script()
  return finish(script())
end

-- Makes room to describe the end of a script that has used up its own memory.
local function use_reserve()
  private.memory_bytes = private.memory_bytes + BYTES_OF_RESERVE
end

local function fail(chunk_name, problem)
  if problem == "not enough memory" then
    return "out-of-memory"
  end
  use_reserve()
  load_chunk("failure")
  return "failed", private.describe_failure(problem, chunk_name, line, stack)
end

local function conclude(chunk_name, ok, ...)
  if not ok then
    return fail(chunk_name, ...)
  elseif ... == "reply-too-large" then
    use_reserve()
    return "reply-too-large", load_chunk("size_of_reply")(select(2, ...))
  end
  return ...
end

-- Returns nil if the source compiles, else the message, its line and an empty traceback.
function private.check_syntax(source, chunk_name)
  start_collecting()
  local compiled, problem = load(source, "=" .. chunk_name, "t")
  if compiled then
    return nil
  end
  load_chunk("failure")
  return private.describe_failure(problem, chunk_name)
end

-- Returns the kind of the outcome and its fields:
--   "succeeded", status, body, then name and value of each header
--   "failed", message, line or nil, traceback
--   "out-of-memory"
--   "reply-too-large", bytes of the body or nil
--   "retry", reason, seconds or nil
--   "fail", reason
function private.run(
  source,
  chunk_name,
  requires,
  is_traced,
  memory_bytes,
  reply_bytes,
  json_depth,
  log_bytes,
  log_lines
)
  start_collecting()
  private.memory_bytes = memory_bytes
  private.json_depth = json_depth
  private.requires = requires
  limit_reply(reply_bytes)
  start_log(log_bytes, log_lines)
  chunk_source = "=" .. chunk_name
  local problem
  script, problem = private.compile_script(source, chunk_source, private.environment)
  if not script then
    return fail(chunk_name, problem)
  end
  if is_traced then
    load_chunk("trace")
    private.start_trace(chunk_source)
  end
  return conclude(chunk_name, xpcall(run_script, on_error))
end
