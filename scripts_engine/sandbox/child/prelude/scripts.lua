-- Compiles the scripts of runs, and keeps the last ones compiled: a script's main function holds
-- nothing but its code and its environment, which is another one for each run.
local shared = ...
local load, next, upvaluejoin = shared.load, next, shared.debug.upvaluejoin

local MAX_COMPILED = 8
local nothing

-- By chunk name and source.
local compiled = {}
shared.compiled_scripts, shared.script_count = compiled, 0

local function no_environment()
  return nothing
end

-- Returns the main function of a script, of which there is one at a time; or nil and the problem.
function shared.compile_script(source, chunk_name, environment)
  local key = chunk_name .. "\n" .. source
  local script, problem = compiled[key], nil
  if not script then
    script, problem = load(source, chunk_name, "t")
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
  upvaluejoin(script, 1, function()
    return environment
  end, 1)
  shared.script = script
  return script
end

-- Separates the last script from the environment of its run.
function shared.unbind_script()
  if shared.script then
    upvaluejoin(shared.script, 1, no_environment, 1)
    shared.script = nil
  end
end
