-- Loaded last into a state: removes what scripts must not have, and prepares each run.
-- A run has an environment and closures of its own: it shares with other runs only functions, none
-- of which holds or writes anything of a run.
local shared, first_seed = ...
local loaded, pristine = package.loaded, _G

collectgarbage, dofile, load, loadfile, warn = nil, nil, nil, nil, nil
debug, io, package, python = nil, nil, nil, nil
loaded.debug, loaded.io, loaded.package, loaded.python = nil, nil, nil, nil

local collectgarbage, floor, unpack = shared.collectgarbage, math.floor, string.unpack
local clock, load_run, new_environment = shared.clock, shared.load_run, shared.new_environment
local randomseed, setmetatable = shared.randomseed, setmetatable
local load, next, upvaluejoin = shared.load, next, shared.debug.upvaluejoin
local string_metatable = shared.debug.getmetatable("")

-- Nothing refers to garbage, and it has no finalizers: a run cannot find that of an earlier one. It
-- is collected before it exceeds this, or when a run needs the memory.
local MAX_GARBAGE_KILOBYTES = 256

-- The last scripts and libraries compiled are kept: a main function holds nothing but its code and
-- its environment, which is another one for each run.
local MAX_COMPILED = 8
local MAX_LIBRARY_BYTES = 512 * 1024
local nothing

-- By chunk name and source.
local compiled = {}
shared.compiled_scripts, shared.script_count = compiled, 0
-- Libraries by key, the keys by name that scripts require as they are sent, and the bytes of both.
shared.library_cache = { libraries = {}, keys = {}, bytes = 0 }

-- The main functions in the environment of the current run.
local bound = {}

local function no_environment()
  return nothing
end

-- Gives a main function the environment of the run.
function shared.bind(main, environment)
  upvaluejoin(main, 1, function()
    return environment
  end, 1)
  bound[#bound + 1] = main
end

-- Separates the main functions from the environment of their run.
function shared.unbind()
  for index = #bound, 1, -1 do
    upvaluejoin(bound[index], 1, no_environment, 1)
    bound[index] = nil
  end
end

-- What the current run has spent on compiling.
local compiled_kilobytes, compiling_seconds = 0, 0

-- Calls what compiles, counts the cost, and returns its two values.
function shared.counted(compile, ...)
  local kilobytes, seconds = collectgarbage("count"), clock()
  local main, problem = compile(...)
  local growth = collectgarbage("count") - kilobytes
  compiled_kilobytes = compiled_kilobytes + (growth > 0 and growth or 0)
  compiling_seconds = compiling_seconds + clock() - seconds
  return main, problem
end

function shared.cost_of_compiling()
  return compiled_kilobytes * 1024, compiling_seconds
end

-- Returns the main function of a script, of which there is one at a time; or nil and the problem.
function shared.compile_script(source, chunk_name, environment)
  local key = chunk_name .. "\n" .. source
  local script, problem = compiled[key], nil
  if not script then
    script, problem = shared.counted(load, source, chunk_name, "t")
    if not script then
      return nil, problem
    end
    if shared.script_count == MAX_COMPILED then
      for other in next, compiled do
        compiled[other] = nil
      end
      shared.script_count = 0
    end
    compiled[key], shared.script_count = script, shared.script_count + 1
  end
  shared.bind(script, environment)
  return script
end

-- Forgets libraries between two runs, so that a run needs none of them twice.
local function bound_library_cache()
  local cache = shared.library_cache
  if cache.bytes > MAX_LIBRARY_BYTES then
    cache.libraries, cache.keys, cache.bytes = {}, {}, 0
  end
end

local inherits = { __index = shared }

local function prepare(seed)
  local environment = new_environment(pristine)
  environment._G = environment
  -- Lua searches these tables for the names of functions in its messages.
  loaded._G = environment
  loaded.coroutine, loaded.math, loaded.os = environment.coroutine, environment.math, environment.os
  loaded.string, loaded.table, loaded.utf8 = environment.string, environment.table, environment.utf8
  string_metatable.__index = environment.string
  randomseed(unpack("i8i8", seed))
  local private = setmetatable({ environment = environment }, inherits)
  shared.run = private
  load_run(environment, private)
end

-- The one function that Python calls.
function shared.call(name, ...)
  local run = shared.run
  local target = run[name] or run.load_chunk(name)
  return target(...)
end

prepare(first_seed)
-- What the state holds while no script runs, garbage included; the first time and the last.
shared.new_kilobytes = collectgarbage("count")
shared.idle_kilobytes = shared.new_kilobytes

-- Drops the last run and prepares the next. Returns by how many bytes the state has grown since it
-- was new, for the limit of the next run: chunks stay, and so do the sizes of Lua's own tables.
function shared.renew(seed)
  collectgarbage("stop")
  shared.unbind()
  bound_library_cache()
  compiled_kilobytes, compiling_seconds = 0, 0
  prepare(seed)
  if collectgarbage("count") > shared.idle_kilobytes + MAX_GARBAGE_KILOBYTES then
    collectgarbage("collect")
    shared.idle_kilobytes = collectgarbage("count")
  end
  return floor((shared.idle_kilobytes - shared.new_kilobytes) * 1024)
end
