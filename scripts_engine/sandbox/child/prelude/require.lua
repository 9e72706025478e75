-- require: runs a library once in a run, and returns what it returned.
local private = ...
local bind, call_python, counted, expect =
  private.bind, private.call_python, private.counted, private.expect
local cache, environment, load = private.library_cache, private.environment, private.load
local error, setmetatable, sub, unpack = error, setmetatable, string.sub, string.unpack

local MAX_NAME_BYTES = 100
local NOT_ENOUGH_MEMORY = "not enough memory"
-- In front of a library's source, on its first line: each library has a `require` of its own, which
-- knows the library's names.
local OWN_REQUIRE = "local require = ...; "

-- What libraries have returned, by key; a library may return nil.
local values, is_loaded = {}, {}
-- Those that run now.
local is_loading = {}

local function read_keys(packed, at)
  local keys = {}
  while at <= #packed do
    local name, key
    name, key, at = unpack("<s4s4", packed, at)
    keys[name] = key
  end
  return keys
end

-- Returns the keys by name of what the script requires.
local function keys_of_script(packed)
  local keys = cache.keys[packed]
  if not keys then
    keys = read_keys(packed, 1)
    cache.keys[packed], cache.bytes = keys, cache.bytes + #packed
  end
  return keys
end

local function compile(key)
  local packed = call_python("library", key)
  local chunk_name, source, at = unpack("<s4s4", packed)
  local keys = read_keys(packed, at)
  local main, problem = load(OWN_REQUIRE .. source, "=" .. chunk_name, "t")
  if problem == NOT_ENOUGH_MEMORY then
    error(problem, 0)
  end
  -- Lua's traceback shows the name of the field by which a function was called.
  cache.libraries[key] = { ["main chunk"] = main, problem = problem, keys = keys }
  cache.bytes = cache.bytes + #source
end

-- Returns a library, compiled now unless an earlier run of this state has compiled it.
local function library_of(key)
  if not cache.libraries[key] then
    counted(compile, key)
  end
  return cache.libraries[key]
end

-- Closed when the library has ended, also by an error: another `require` runs it again then.
local loading = {
  __close = function(mark)
    is_loading[mark.key] = nil
  end,
}

-- Returns the `require` of a chunk that requires libraries of these keys by name.
local function new_require(keys)
  return function(name)
    expect("string", name, "require")
    local key = keys[name]
    if not key then
      local shown = sub(name, 1, MAX_NAME_BYTES)
      error('require: no library "' .. shown .. '" here; write its name out: require("name")', 2)
    elseif is_loaded[key] then
      return values[key]
    elseif is_loading[key] then
      local shown = sub(name, 1, MAX_NAME_BYTES)
      error('require: the library "' .. shown .. '" requires itself before it has returned', 2)
    end
    local library = library_of(key)
    local main = library["main chunk"]
    if not main then
      error(library.problem, 0)
    end
    is_loading[key] = true
    local mark <close> = setmetatable({ key = key }, loading)
    bind(main, environment)
    local value = library["main chunk"](new_require(library.keys))
    values[key], is_loaded[key] = value, true
    return value
  end
end

private.functions.require = new_require(keys_of_script(private.requires))
