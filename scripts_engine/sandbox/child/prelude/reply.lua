-- Reply, and the conversion of a returned Reply to the fields of an outcome.
local private = ...
local body_of, call_python = private.body_of, private.call_python
local expect, warn = private.expect, private.warn
local find, format, lower, sort = string.find, string.format, string.lower, table.sort
local error, math_type, next, rawget = error, math.type, next, rawget
local setmetatable, tostring, type, unpack = setmetatable, tostring, type, table.unpack

-- The same as in limits.py.
local MAX_HEADERS, MAX_HEADER_BYTES = 100, 16 * 1024
local reply_mark = { __name = "Reply", __metatable = false }
local fields = { status = true, headers = true, body = true }

local without_body = { [204] = true, [205] = true, [304] = true }

-- Returns the problem of the reply's fields, or nil.
local function find_problem(reply)
  local status, headers = rawget(reply, "status"), rawget(reply, "headers")
  if status ~= nil and (math_type(status) ~= "integer" or status < 200 or status > 599) then
    return "status must be an integer from 200 to 599"
  end
  if headers == nil then
    return nil
  elseif type(headers) ~= "table" then
    return "headers must be a table"
  end
  local seen, count, bytes = {}, 0, 0
  for name, value in next, headers do
    if type(name) ~= "string" or not find(name, "^[%w!#$%%&'*+%-.^_`|~]+$") then
      return "a header has an invalid name"
    elseif type(value) ~= "string" and type(value) ~= "number" then
      return format("the header %s must be a string", name)
    elseif find(value, "[\0-\8\10-\31\127]") then
      return format("the header %s holds a control character", name)
    elseif seen[lower(name)] then
      return format("the header %s is given twice", name)
    end
    seen[lower(name)] = true
    count = count + 1
    bytes = bytes + #name + #tostring(value)
    if count > MAX_HEADERS or bytes > MAX_HEADER_BYTES then
      return format("more than %d headers or %d bytes of them", MAX_HEADERS, MAX_HEADER_BYTES)
    end
  end
end

function private.functions.Reply(given)
  expect("table", given, "Reply")
  local reply = {}
  for key, value in next, given do
    if not fields[key] then
      error("Reply: unknown field " .. tostring(key), 2)
    end
    reply[key] = value
  end
  local problem = find_problem(reply)
  if problem then
    error("Reply: " .. problem, 2)
  end
  return setmetatable(reply, reply_mark)
end

local function answer(status, headers, body, content_type)
  local names = {}
  for name in next, headers do
    local key = lower(name)
    if call_python("header.is_reserved", name) then
      warn(format("the header %s was dropped: a script may not set it", name))
    else
      names[#names + 1] = name
      if key == "content-type" then
        content_type = nil
      end
    end
  end
  if without_body[status] then
    if body ~= "" then
      warn(format("the body was dropped: status %d has none", status))
    end
    body, content_type = "", nil
  end
  sort(names)
  local flat = {}
  for _, name in next, names do
    flat[#flat + 1] = name
    flat[#flat + 1] = tostring(headers[name])
  end
  if content_type then
    flat[#flat + 1] = "Content-Type"
    flat[#flat + 1] = content_type
  end
  return "succeeded", status, body, unpack(flat)
end

-- Takes a Reply that the script returned; returns the fields of an outcome, as `finish` does.
private.finishers[reply_mark] = function(reply)
  -- Check again: the script may have changed the fields.
  local problem = find_problem(reply)
  if problem then
    error("Reply: " .. problem, 0)
  end
  local body, content_type = body_of(rawget(reply, "body"))
  if not body then
    return "reply-too-large", rawget(reply, "body")
  end
  return answer(rawget(reply, "status") or 200, rawget(reply, "headers") or {}, body, content_type)
end
