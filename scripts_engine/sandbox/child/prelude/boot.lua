-- Loaded first: calls to Python, and the loading of chunks on first use.
local private, python_function = ...
-- The prelude makes no garbage while it loads; `run` starts the collector.
collectgarbage("stop")
local collectgarbage, error, load, pcall, type = collectgarbage, error, load, pcall, type

private.debug = debug
private.dump = string.dump
private.load = load
private.memory_bytes = math.huge

-- The functions of chunks loaded on first use, by full name.
local functions = {}
private.functions = functions

-- A Python exception arrives as an error that holds the exception object. From it a script could
-- climb to the interpreter, so only a string is raised again.
local function without_exception(ok, ...)
  if ok then
    return ...
  end
  local problem = ...
  if type(problem) == "string" then
    error(problem, 0)
  end
  error("internal error of the sandbox", 0)
end

local NOT_ENOUGH_MEMORY = "not enough memory"

-- The bytes that the script may still allocate.
local function room()
  local bytes = private.memory_bytes - collectgarbage("count") * 1024
  if bytes < 0 then
    collectgarbage("collect")
    bytes = private.memory_bytes - collectgarbage("count") * 1024
    if bytes < 0 then
      error(NOT_ENOUGH_MEMORY, 0)
    end
  end
  return bytes
end

local function ask(operation, ...)
  return without_exception(pcall(python_function, operation, room(), ...))
end

-- If Lua ran out of memory while it copies a value from Python, the error would jump over Python's
-- frames and the process would hang. Therefore a script runs out of memory a little before Lua
-- does, and Python keeps an answer longer than the room until garbage has been collected.
local function call_python(operation, ...)
  local answer, problem = ask(operation, ...)
  if problem ~= NOT_ENOUGH_MEMORY then
    return answer, problem
  end
  collectgarbage("collect")
  answer, problem = ask("kept")
  if problem == NOT_ENOUGH_MEMORY then
    error(NOT_ENOUGH_MEMORY, 0)
  end
  return answer, problem
end

private.call_python = call_python

-- The environment of chunks loaded on first use, since a script may replace the global functions.
local originals = {
  _G = _G,
  coroutine = coroutine,
  error = error,
  math = { floor = math.floor, huge = math.huge, type = math.type },
  next = next,
  pcall = pcall,
  rawequal = rawequal,
  rawget = rawget,
  rawlen = rawlen,
  select = select,
  setmetatable = setmetatable,
  string = {
    byte = string.byte,
    char = string.char,
    find = string.find,
    format = string.format,
    gmatch = string.gmatch,
    gsub = string.gsub,
    lower = string.lower,
    match = string.match,
    pack = string.pack,
    sub = string.sub,
    unpack = string.unpack,
  },
  table = { concat = table.concat, sort = table.sort, unpack = table.unpack },
  tonumber = tonumber,
  tostring = tostring,
  type = type,
}
private.originals = originals

-- Loads a chunk, named by itself or by a function in it, unless that function is there. Returns the
-- function.
local function load_chunk(name)
  if not functions[name] then
    load(call_python("chunk", name), nil, "b", originals)(private)
  end
  return functions[name]
end

private.load_chunk = load_chunk

-- Makes the functions of a library, which load their chunk on the first call; `target` is a name
-- until then. The tail call keeps their frames out of tracebacks.
-- A name without its library is one string less to create in every state.
function private.later(library)
  return function(target)
    return function(...)
      if type(target) == "string" then
        target = load_chunk(library .. target)
      end
      return target(...)
    end
  end
end

-- For functions alone in their library, by their full names.
private.single = private.later("")
