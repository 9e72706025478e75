-- Loads the other chunks, each with the private table that scripts never see.
-- Called with the one Python function of the state, the number of chunks to load now, and name
-- and code of all of them. Those that few scripts use are loaded when they are first called.
local python_function, eager = ...
-- Nothing of the prelude is garbage yet.
collectgarbage("stop")
local error, load, pcall, select, type = error, load, pcall, select, type
local collectgarbage = collectgarbage

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

-- What chunks loaded later define, by full name.
local functions = {}
local chunks = {}
local private = {
  debug = debug,
  load = load,
  functions = functions,
  memory_bytes = math.huge,
}

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
function private.call_python(operation, ...)
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
  table = { concat = table.concat, sort = table.sort },
  tonumber = tonumber,
  type = type,
}

local function load_chunk(name, environment)
  load(chunks[name], nil, "b", environment or originals)(private)
end

private.load_chunk = load_chunk

-- Stands in for a function of a chunk that is loaded later; its frame leaves no trace.
function private.later(chunk_name, function_name)
  return function(...)
    local target = functions[function_name]
    if not target then
      load_chunk(chunk_name)
      target = functions[function_name]
    end
    return target(...)
  end
end

for index = 3, select("#", ...), 2 do
  local name, code = select(index, ...)
  chunks[name] = code
  if index < 3 + 2 * eager then
    load_chunk(name, _G)
  end
end

-- The one without addresses.
originals.tostring = tostring

collectgarbage("restart")

return private.run, private.check_syntax, function()
  load_chunk("audit")
  return private.list_names()
end
