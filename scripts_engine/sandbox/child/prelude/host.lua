-- http, queue, store and secrets: calls to the parent process, which holds the quotas.
local private = ...
local call_python, expect = private.call_python, private.expect
local functions, from_json, try_to_json = private.functions, private.from_json, private.try_to_json
local error, lower, next, select, type = error, string.lower, next, select, type
local rawget, tostring = rawget, tostring

private.load_chunk("packing")
local pack_list, unpack_value = private.pack_list, private.unpack_value

-- These only stop runaway tables; the parent checks stored values against a limit of 64 KiB.
local MAX_STORED_BYTES = 1024 * 1024
local MAX_REQUEST_BYTES = 4 * 1024 * 1024
-- The same as in limits.py.
local MAX_PUSHED_BYTES = 256 * 1024

-- Raises two levels up, at the line of the script that called the caller of this function.
local function ask(name, ...)
  local packed, unpackable = pack_list({ ... }, select("#", ...))
  if not packed then
    error(name .. ": " .. unpackable, 3)
  end
  local answer, problem = call_python("call", name, packed)
  if not answer then
    error(problem, 3)
  end
  return unpack_value(answer)
end

local request_fields = {
  method = "string",
  url = "string",
  headers = "table",
  body = "string",
  timeout = "number",
}

local function request_of(name, options)
  local request = {}
  for key, value in next, options do
    local kind = request_fields[key]
    if key ~= "json" then
      if not kind then
        error(name .. ": unknown option " .. tostring(key), 3)
      end
      expect(kind, value, name .. ": " .. key, 2)
      request[key] = value
    end
  end
  expect("string", request.url, name .. ": url", 2)
  local headers, has_content_type = {}, false
  for header, value in next, request.headers or headers do
    expect("string", header, name .. ": header name", 2)
    if type(value) ~= "number" then
      expect("string", value, name .. ": header " .. header, 2)
    end
    headers[header] = tostring(value)
    has_content_type = has_content_type or lower(header) == "content-type"
  end
  local json = rawget(options, "json")
  if json ~= nil then
    if request.body ~= nil then
      error(name .. ": body and json exclude each other", 3)
    end
    local text, problem = try_to_json(json, MAX_REQUEST_BYTES, false)
    if not text then
      error(name .. ": json: " .. (problem or "the text is over 4 MiB"), 3)
    end
    request.body = text
    if not has_content_type then
      headers["Content-Type"] = "application/json"
    end
  end
  request.headers = headers
  return request
end

functions["http.request"] = function(options)
  expect("table", options, "http.request")
  local request = request_of("http.request", options)
  request.method = request.method or "GET"
  return (ask("http.request", request))
end

-- The parent knows the method by the name of the function.
for _, name in next, { "http.get", "http.head", "http.delete" } do
  functions[name] = function(url, headers)
    return (ask(name, request_of(name, { url = url, headers = headers })))
  end
end

for _, name in next, { "http.post", "http.put", "http.patch" } do
  functions[name] = function(url, body, headers)
    return (ask(name, request_of(name, { url = url, body = body, headers = headers })))
  end
end

local function expect_key(key, what)
  expect("string", key, what .. ": key", 2)
end

functions["store.get"] = function(key)
  expect_key(key, "store.get")
  local text = ask("store.get", key)
  local value = text and from_json(text, "store.get", 2)
  return value
end

local function stored_text(value, what)
  local text, problem = try_to_json(value, MAX_STORED_BYTES, false)
  if not text then
    error(what .. ": " .. (problem or "the value is too large"), 3)
  end
  return text
end

functions["store.set"] = function(key, value, ttl_seconds)
  expect_key(key, "store.set")
  if ttl_seconds ~= nil then
    expect("number", ttl_seconds, "store.set: ttl_seconds")
  end
  ask("store.set", key, stored_text(value, "store.set"), ttl_seconds)
end

functions["store.set_if_absent"] = function(key, value, options)
  expect_key(key, "store.set_if_absent")
  local ttl
  if options ~= nil then
    expect("table", options, "store.set_if_absent: options")
    for name, option in next, options do
      if name ~= "ttl" then
        error("store.set_if_absent: unknown option " .. tostring(name), 2)
      end
      expect("number", option, "store.set_if_absent: ttl")
      ttl = option
    end
  end
  local text = stored_text(value, "store.set_if_absent")
  return (ask("store.set_if_absent", key, text, ttl))
end

functions["store.delete"] = function(key)
  expect_key(key, "store.delete")
  ask("store.delete", key)
end

functions["store.increment"] = function(key, by)
  expect_key(key, "store.increment")
  if by ~= nil then
    expect("number", by, "store.increment: by")
  end
  return (ask("store.increment", key, by or 1))
end

functions["store.list"] = function(prefix, limit)
  expect("string", prefix, "store.list: prefix")
  expect("number", limit, "store.list: limit")
  return (ask("store.list", prefix, limit))
end

local push_options = { delay = "number", key = "string", attempts = "number" }

local function pushed_payload(payload)
  if payload == nil then
    return ""
  end
  local text, problem = payload, nil
  if type(payload) ~= "string" then
    text, problem = try_to_json(payload, MAX_PUSHED_BYTES, false)
  end
  if problem then
    error("queue.push: payload: " .. problem, 3)
  elseif not text or #text > MAX_PUSHED_BYTES then
    error("queue.push: the payload is over 256 KiB", 3)
  end
  return text
end

functions["queue.push"] = function(script, payload, options)
  expect("string", script, "queue.push: script")
  if options == nil then
    options = {}
  end
  expect("table", options, "queue.push: options")
  local given = {}
  for name, option in next, options do
    local kind = push_options[name]
    if not kind then
      error("queue.push: unknown option " .. tostring(name), 2)
    end
    expect(kind, option, "queue.push: " .. name)
    given[name] = option
  end
  local text = pushed_payload(payload)
  local answer = ask("queue.push", script, text, given.delay, given.key, given.attempts)
  return answer[1], answer[2]
end

functions["secrets.get"] = function(name)
  expect("string", name, "secrets.get: name")
  return (ask("secrets.get", name))
end
