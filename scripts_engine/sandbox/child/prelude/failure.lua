-- Describes the failure of a script: message, line, traceback; or the size of too large a reply.
local private = ...
local find, gmatch, gsub, match, sub =
  string.find, string.gmatch, string.gsub, string.match, string.sub
local concat = table.concat
local pcall, tonumber, tostring, type = pcall, tonumber, tostring, type
local try_to_json = private.try_to_json

-- A longer JSON is not written out only to measure it.
local MAX_MEASURED_BYTES = 4 * 1024 * 1024
local MAX_MESSAGE_BYTES, MAX_TRACEBACK_BYTES = 4096, 16 * 1024
-- Digits of a line number; a source has at most 64 KiB.
local MAX_DIGITS = 6

-- Lua's own messages begin with the chunk name, which it cuts to 59 characters.
local function line_of_message(message, chunk_name)
  local prefix = sub(chunk_name, 1, 59) .. ":"
  if type(message) == "string" and sub(message, 1, #prefix) == prefix then
    local digits = match(message, "^%d+", #prefix + 1)
    return digits and #digits <= MAX_DIGITS and tonumber(digits) or nil
  end
end

-- Removes the frames of the prelude ("?" without a line, and the callers of the script), which mean
-- nothing to the reader.
local function script_traceback(stack)
  local kept = {}
  for line in gmatch(stack, "[^\n]+") do
    if not find(line, "^\t%?: ") and not find(line, "^\t%(%.%.%.tail") then
      -- A library is called by a field of this name.
      kept[#kept + 1] = gsub(line, "in field 'main chunk'$", "in main chunk")
    end
  end
  if find(kept[#kept], "in function 'xpcall'", 1, true) then
    kept[#kept] = nil
  end
  kept[#kept] = gsub(kept[#kept], "in upvalue '%?'$", "in main chunk")
  return concat(kept, "\n")
end

local function message_of(problem)
  if type(problem) == "table" then
    local ok, text = pcall(tostring, problem)
    if ok and text ~= "table" then
      return text
    end
    return try_to_json(problem, MAX_MESSAGE_BYTES, false) or "an error object"
  end
  return tostring(problem)
end

-- Takes an error with its line and stack, or an error of the compiler without them. Returns the
-- message, its line or nil, and the traceback.
function private.describe_failure(problem, chunk_name, line, stack)
  return sub(message_of(problem), 1, MAX_MESSAGE_BYTES),
    line_of_message(problem, chunk_name) or line,
    stack and sub(script_traceback(stack), 1, MAX_TRACEBACK_BYTES) or ""
end

-- Returns the bytes of a body, or nil if they are too many to count.
function private.functions.size_of_reply(body)
  if type(body) == "string" then
    return #body
  end
  -- The memory may not suffice for the whole text.
  local ok, text = pcall(try_to_json, body, MAX_MEASURED_BYTES, false)
  return ok and text and #text or nil
end
