-- Loaded first into a state: what its runs share. Scripts reach none of these tables, and nothing
-- here is of a single run, except for `shared.run`.
local shared = ...
-- The prelude makes no garbage while it loads; `run` starts the collector.
collectgarbage("stop")

shared.clock = os.clock
shared.collectgarbage = collectgarbage
shared.debug = debug
shared.dump = string.dump
shared.load = load

-- The chunks loaded on first use, as functions of a run's `private`, by name and by code.
shared.compiled = {}

-- The environment of chunks loaded on first use, since a script may replace the global functions.
shared.originals = {
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

-- Makes a function that loads its chunk on the first call of a run. The tail call keeps its frame
-- out of tracebacks.
function shared.later(name)
  return function(...)
    local run = shared.run
    return (run.functions[name] or run.load_chunk(name))(...)
  end
end

local error, type = error, type

-- Checks an argument's type; the error points at the script's line. `level` counts from the calling
-- function; 1 blames that function's caller.
function shared.expect(kind, value, what, level)
  if type(value) ~= kind then
    error(what .. ": " .. kind .. " expected, got " .. type(value), (level or 1) + 2)
  end
end
