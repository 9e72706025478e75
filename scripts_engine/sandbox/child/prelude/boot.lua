-- Comes first: the way to Python, and to the chunks that are loaded when they are first needed.
local private, python_function = ...
-- Nothing of the prelude is garbage yet.
collectgarbage("stop")
local collectgarbage, error, load, pcall, type = collectgarbage, error, load, pcall, type

private.debug = debug
private.load = load
private.memory_bytes = math.huge

-- What chunks loaded later define, by full name.
local functions = {}
private.functions = functions

-- An exception of Python arrives as an error that holds the exception object, and from such an
-- object a script could climb to the interpreter. It ends here.
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

-- Bytes that the script may still use.
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

-- Lua must not run out of memory while it takes a value from Python: the error would jump over
-- Python's frames and leave the process hanging. So a script is out of memory a little before
-- Lua is, and Python keeps what is longer than the room until the garbage is gone.
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

-- What is loaded later finds Lua's own functions in here: a script may replace the global ones.
local originals = {
  _G = _G,
  coroutine = coroutine,
  error = error,
  math = { floor = math.floor, huge = math.huge, type = math.type },
  next = next,
  pcall = pcall,
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

local function load_chunk(name)
  load(call_python("chunk", name), nil, "b", originals)(private)
end

private.load_chunk = load_chunk

-- Makes functions that stand in for those of a chunk that is loaded later; their frames leave no
-- trace.
function private.later(chunk_name)
  return function(function_name)
    return function(...)
      local target = functions[function_name]
      if not target then
        load_chunk(chunk_name)
        target = functions[function_name]
      end
      return target(...)
    end
  end
end
