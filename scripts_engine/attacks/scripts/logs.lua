-- attack: log_binary
-- expect: succeeded: done
print("\xff\0\27[31m")
log.error(nil, null, {}, print)
return "done"

-- attack: log_cannot_be_rewound
-- expect: succeeded: done
log.info("kept")
log = nil
print = nil
return "done"

-- attack: log_flood
-- expect: timed-out
-- limits: wall=0.3
while true do print("flood") end

-- attack: log_long_lines
-- expect: succeeded: done
for _ = 1, 100 do print(("x"):rep(1e6)) end
return "done"

-- attack: log_many_arguments
-- expect: succeeded: done
print(table.unpack({}, 1, 1e5))
return "done"

-- attack: log_table_hostile
-- expect: succeeded: logged
local cycle = {}
cycle.cycle = cycle
local shared = {"x"}
for _ = 1, 100 do shared = {shared, shared} end
local spin = setmetatable({1}, {__index = function() while true do end end, __pairs = error, __len = error})
for _ = 1, 100 do log.info(cycle, spin, {0/0, print}, shared, {"\255\0"}, {[{}] = 1}) end
log.error(setmetatable({}, {__metatable = false})) log.debug()
return "logged"
