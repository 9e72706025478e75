-- expect: succeeded: 1970-01-02 86400 true
os.date("!%c", 1)
pcall(os.date, "%Ez")
os.time({ year = 2000, month = 13, day = 45, isdst = true })
time.parse("2000-01-01")
pcall(time.parse, "leaked")
time.in_zone(0, "Europe/Berlin")
os.time, time.now, os.clock = nil, nil, nil
-- the next run
local day = os.time({ year = 1970, month = 1, day = 2, hour = 0 })
return os.date("!%Y-%m-%d", day) .. " " .. day .. " " .. tostring(time.now() > day and os.clock() > 0)
