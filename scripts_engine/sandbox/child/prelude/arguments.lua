-- The check of an argument's type. The error points at the script's line.
local shared = ...
local error, type = error, type

-- `level` counts from the calling function; 1 blames that function's caller.
function shared.expect(kind, value, what, level)
  if type(value) ~= kind then
    error(what .. ": " .. kind .. " expected, got " .. type(value), (level or 1) + 2)
  end
end
