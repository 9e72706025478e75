-- Turns the values that a script returns into the fields of an outcome.
local private = ...
local getmetatable, try_to_json = private.debug.getmetatable, private.try_to_json
local error, select, tostring, type = error, select, tostring, type
local sub = string.sub

local MAX_MESSAGE_BYTES = 4096
local max_body_bytes

function private.limit_reply(bytes)
  max_body_bytes = bytes
end

-- Returns the bytes and their default content type, or nil if they are too many.
local function body_of(value)
  if value == nil then
    return "", nil
  elseif type(value) == "string" then
    if #value > max_body_bytes then
      return nil
    end
    return value, "text/plain; charset=utf-8"
  end
  local text, problem = try_to_json(value, max_body_bytes, false)
  if problem then
    error("the result cannot be sent: " .. problem, 0)
  end
  return text, "application/json"
end

private.body_of = body_of

-- By the mark of Reply, Retry or Fail, what turns it into the fields of an outcome. A mark does not
-- exist before the script's first call of its function.
local finishers = {}
private.finishers = finishers

-- Takes the values that the script returned; returns the fields of an outcome, as `run` does, but
-- "reply-too-large" with the body itself.
function private.finish(...)
  local value, message = ...
  if value == nil and select("#", ...) > 1 and message ~= nil then
    return "failed", sub(tostring(message), 1, MAX_MESSAGE_BYTES), nil, ""
  end
  local metatable = type(value) == "table" and getmetatable(value)
  local finish_marked = metatable and finishers[metatable]
  if finish_marked then
    return finish_marked(value)
  end
  local body, content_type = body_of(value)
  if not body then
    return "reply-too-large", value
  elseif content_type then
    return "succeeded", 200, body, "Content-Type", content_type
  end
  return "succeeded", 200, body
end
