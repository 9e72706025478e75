-- Retry and Fail, and the conversion of a returned one to the fields of an outcome.
local private = ...
local expect = private.expect
local error, next, rawget, setmetatable = error, next, rawget, setmetatable
local sub, tostring, type = string.sub, tostring, type

-- The same as in limits.py.
local MAX_RETRY_SECONDS, MAX_MESSAGE_BYTES = 86400, 4096

-- Returns the problem of the verdict's fields, or nil.
local function find_problem(verdict)
  local after, reason = rawget(verdict, "after"), rawget(verdict, "reason")
  -- NaN fails the comparison too.
  if after ~= nil and not (type(after) == "number" and after >= 0 and after <= MAX_RETRY_SECONDS) then
    return "after must be a number of seconds from 0 to " .. MAX_RETRY_SECONDS
  elseif reason ~= nil and type(reason) ~= "string" then
    return "reason must be a string"
  end
end

local function define(name, fields)
  local mark = { __name = name, __metatable = false }

  private.functions[name] = function(given)
    expect("table", given, name)
    local verdict = {}
    for key, value in next, given do
      if not fields[key] then
        error(name .. ": unknown field " .. tostring(key), 2)
      end
      verdict[key] = value
    end
    local problem = find_problem(verdict)
    if problem then
      error(name .. ": " .. problem, 2)
    end
    return setmetatable(verdict, mark)
  end

  -- Takes the verdict that the script returned; returns the fields of an outcome, as `run` does.
  private.finishers[mark] = function(verdict)
    -- Check again: the script may have changed the fields.
    local problem = find_problem(verdict)
    if problem then
      error(name .. ": " .. problem, 0)
    end
    local reason = sub(rawget(verdict, "reason") or "", 1, MAX_MESSAGE_BYTES)
    if fields.after then
      return "retry", reason, rawget(verdict, "after")
    end
    return "fail", reason
  end
end

define("Retry", { after = true, reason = true })
define("Fail", { reason = true })
