-- The size of a reply over its limit, for the error.
local private = ...
local pcall, try_to_json, type = pcall, private.try_to_json, type

-- A longer JSON is not written out only to measure it.
local MAX_MEASURED_BYTES = 4 * 1024 * 1024

-- Returns the bytes of a body, or nil if they are too many to count.
function private.functions.size_of_reply(body)
  if type(body) == "string" then
    return #body
  end
  -- The memory may not suffice for the whole text.
  local ok, text = pcall(try_to_json, body, MAX_MEASURED_BYTES, false)
  return ok and text and #text or nil
end
