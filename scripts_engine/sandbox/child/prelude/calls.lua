-- Loaded first into a run: calls to Python, and the loading of chunks on first use.
local private = ...
local collectgarbage, load = private.collectgarbage, private.load
local error, pcall, type = error, pcall, type
local compiled, originals, python_function =
  private.compiled, private.originals, private.python_function

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

-- Compiles a chunk, unless an earlier run of this state has.
local function compile(name)
  local code = call_python("chunk", name)
  local chunk = compiled[code] or load(code, nil, "b", originals)()
  compiled[code], compiled[name] = chunk, chunk
  return chunk
end

-- Loads a chunk, named by itself or by a function in it, unless that function is there. Returns the
-- function.
function private.load_chunk(name)
  if not functions[name] then
    local chunk = compiled[name] or compile(name)
    chunk(private)
  end
  return functions[name]
end
