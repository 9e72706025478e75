-- expect: succeeded: fresh
local leaking = setmetatable({}, { __mode = "kv" })
local late = {}
for index = 1, 100 do
  leaking[index] = setmetatable({}, late)
end
late.__gc = function() string.leaked = "leaked" end
pcall(setmetatable, _G, { __gc = function() leaked = "leaked" end })
local closed <close> = setmetatable({}, { __close = function() leaked = "leaked" end })
-- the next run
local garbage
for index = 1, 1000 do
  garbage = { index }
end
return leaked or ("").leaked or "fresh"
