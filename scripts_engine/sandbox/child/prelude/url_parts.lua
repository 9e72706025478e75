-- url.parse and url.build_query: the generic syntax of RFC 3986.
-- url.parse accepts nothing more lenient, since scripts compare hosts to decide what they trust.
local private = ...
local expect, functions, null = private.expect, private.functions, private.null
local find, format, gsub, lower, match =
  string.find, string.format, string.gsub, string.lower, string.match
local concat, sort = table.concat, table.sort
local huge, math_type = math.huge, math.type
local error, next, rawequal, rawget, rawlen = error, next, rawequal, rawget, rawlen
local tonumber, tostring, type = tonumber, tostring, type
local encode = private.load_chunk("url.encode")

local MAX_PORT = 65535

local function refuse(what)
  error("url.parse: " .. what, 3)
end

-- Returns the byte at which something must be percent-encoded, or nil.
local function find_invalid(text)
  local at = find(text, "[^%w%-._~:/?#%[%]@!$&'()*+,;=%%]")
  if at then
    return at
  end
  -- Of the same length, so that the position is that of the text.
  return find(gsub(text, "%%%x%x", "..."), "%", 1, true)
end

-- Returns the user, the host and the port, or the problem as the fourth value.
local function split_authority(authority)
  local user, place = match(authority, "^([^@%[%]]*)@(.*)$")
  place = place or authority
  local host, rest = match(place, "^(%[[%x:.]+%])(.*)$")
  if not host then
    host, rest = match(place, "^(%[[vV]%x+%.[^%[%]@]+%])(.*)$")
  end
  if not host then
    host, rest = match(place, "^([^:@%[%]]*)(.*)$")
  end
  local digits = match(rest, "^:(%d*)$")
  if rest ~= "" and not digits then
    return nil, nil, nil, "the host or the port is not valid"
  end
  local port = digits and tonumber(digits)
  if port and port > MAX_PORT then
    return nil, nil, nil, "the port is over " .. MAX_PORT
  end
  return user, lower(host), port
end

functions["url.parse"] = function(text)
  expect("string", text, "url.parse: s")
  local invalid_at = find_invalid(text)
  if invalid_at then
    refuse("the character at byte " .. invalid_at .. " must be percent-encoded")
  end
  local rest, fragment = match(text, "^([^#]*)#?(.*)$")
  if not find(text, "#", 1, true) then
    fragment = nil
  elseif find(fragment, "#", 1, true) then
    refuse("a second '#'")
  end
  local query
  if find(rest, "?", 1, true) then
    rest, query = match(rest, "^([^?]*)%?(.*)$")
  end
  local scheme, after = match(rest, "^(%a[%w+%-.]*):(.*)$")
  rest = after or rest
  local user, host, port, problem
  local authority, path = match(rest, "^//([^/]*)(.*)$")
  if authority then
    user, host, port, problem = split_authority(authority)
    if problem then
      refuse(problem)
    end
  end
  path = path or rest
  if find(path .. (query or "") .. (fragment or ""), "[%[%]]") then
    refuse("a bracket outside the host must be percent-encoded")
  elseif not scheme and not authority and find(path, "^[^/]*:") then
    refuse("the scheme is not valid")
  end
  return {
    scheme = scheme and lower(scheme),
    user = user,
    host = host,
    port = port,
    path = path,
    query = query,
    fragment = fragment,
  }
end

-- Returns a value in a query as text; raises at the line that called url.build_query.
local function query_text(value, name, level)
  local kind = type(value)
  if kind == "number" and (value ~= value or value == huge or value == -huge) then
    error(format("url.build_query: %s: a finite number expected", name), level + 1)
  elseif kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
    local expected = "url.build_query: %s: string, number, boolean or an array of them expected, got %s"
    error(format(expected, name, kind), level + 1)
  end
  return tostring(value)
end

-- Returns the values of a name as a list.
local function query_texts(value, name)
  if rawequal(value, null) then
    error(format("url.build_query: %s: null has no text", name), 3)
  elseif type(value) ~= "table" then
    return { query_text(value, name, 3) }
  end
  local texts, size = {}, rawlen(value)
  for key in next, value do
    if math_type(key) ~= "integer" or key < 1 or key > size then
      error(format("url.build_query: %s: the table is not an array", name), 3)
    end
  end
  for index = 1, size do
    texts[index] = query_text(rawget(value, index), name, 3)
  end
  return texts
end

-- All access is raw, so no metamethod of the script is called.
functions["url.build_query"] = function(values)
  expect("table", values, "url.build_query")
  local names = {}
  for name in next, values do
    expect("string", name, "url.build_query: name")
    names[#names + 1] = name
  end
  sort(names)
  local written = {}
  for index = 1, #names do
    local name = names[index]
    local texts = query_texts(rawget(values, name), name)
    local prefix = encode(name) .. "="
    for position = 1, #texts do
      written[#written + 1] = prefix .. encode(texts[position])
    end
  end
  return concat(written, "&")
end
