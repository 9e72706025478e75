-- expect: succeeded: fresh
leaked, _G.also, _ENV.third = "leaked", "leaked", "leaked"
rawset(_G, 1, "leaked")
local own = _ENV
_ENV = { leaked = "leaked" }
own.by_the_old_name = "leaked"
-- the next run
return leaked or also or third or _G[1] or by_the_old_name or "fresh"
