-- null, and the maximum nesting of arrays and objects, both read and written.
local private = ...

null = setmetatable({}, private.null_metatable)
private.null = null
private.json_depth = 128
