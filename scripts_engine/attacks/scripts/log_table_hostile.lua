-- expect: succeeded: logged
local cycle = {}
cycle.cycle = cycle
local shared = {"x"}
for _ = 1, 100 do shared = {shared, shared} end
local spin = setmetatable({1}, {__index = function() while true do end end, __pairs = error, __len = error})
for _ = 1, 100 do log.info(cycle, spin, {0/0, print}, shared, {"\255\0"}, {[{}] = 1}) end
log.error(setmetatable({}, {__metatable = false})) log.debug()
return "logged"
