-- string.split, string.trim and html.escape.
local private = ...
local expect, functions = private.expect, private.functions
local error, floor, type = error, math.floor, type
local find, gsub, match, sub = string.find, string.gsub, string.match, string.sub

functions["string.split"] = function(text, separator, max)
  expect("string", text, "string.split: s")
  expect("string", separator, "string.split: sep")
  if separator == "" then
    error("string.split: the separator must not be empty", 2)
  end
  if max ~= nil and (type(max) ~= "number" or max < 1 or floor(max) ~= max) then
    error("string.split: max must be a whole number of at least 1", 2)
  end
  local parts, count, start = {}, 1, 1
  while not max or count < max do
    local first, last = find(text, separator, start, true)
    if not first then
      break
    end
    parts[count] = sub(text, start, first - 1)
    count, start = count + 1, last + 1
  end
  parts[count] = sub(text, start)
  return parts
end

functions["string.trim"] = function(text)
  expect("string", text, "string.trim: s")
  local first = find(text, "%S")
  -- The greedy match takes linear time, also for long runs of whitespace.
  return first and match(text, ".*%S", first) or ""
end

local entities = {
  ["&"] = "&amp;",
  ["<"] = "&lt;",
  [">"] = "&gt;",
  ['"'] = "&quot;",
  ["'"] = "&#39;",
}

functions["html.escape"] = function(text)
  expect("string", text, "html.escape: s")
  return (gsub(text, "[&<>\"']", entities))
end
