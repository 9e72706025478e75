-- What the functions of the platform say about a wrong argument, pointing at the script's line.
local private = ...
local error, type = error, type

-- `level` counts from the function that calls this one: 1 blames the caller of that function.
function private.expect(kind, value, what, level)
  if type(value) ~= kind then
    error(what .. ": " .. kind .. " expected, got " .. type(value), (level or 1) + 2)
  end
end
