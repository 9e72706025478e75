-- Loaded last into a state: removes what scripts must not have, and prepares each run.
-- A run has an environment and closures of its own: it shares with other runs only functions, none
-- of which holds or writes anything of a run.
local shared, first_seed = ...
local loaded, pristine = package.loaded, _G

collectgarbage, dofile, load, loadfile, require, warn = nil, nil, nil, nil, nil, nil
debug, io, package, python = nil, nil, nil, nil
loaded.debug, loaded.io, loaded.package, loaded.python = nil, nil, nil, nil

local collectgarbage, floor, unpack = shared.collectgarbage, math.floor, string.unpack
local load_run, new_environment = shared.load_run, shared.new_environment
local randomseed, setmetatable = shared.randomseed, setmetatable
local string_metatable = shared.debug.getmetatable("")

-- Nothing refers to garbage, and it has no finalizers: a run cannot find that of an earlier one. It
-- is collected before it exceeds this, or when a run needs the memory.
local MAX_GARBAGE_KILOBYTES = 256

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
  shared.unbind_script()
  prepare(seed)
  if collectgarbage("count") > shared.idle_kilobytes + MAX_GARBAGE_KILOBYTES then
    collectgarbage("collect")
    shared.idle_kilobytes = collectgarbage("count")
  end
  return floor((shared.idle_kilobytes - shared.new_kilobytes) * 1024)
end
