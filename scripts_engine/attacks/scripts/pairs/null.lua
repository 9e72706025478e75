-- expect: succeeded: fresh
rawset(null, "leaked", "leaked")
rawset(null, 1, "leaked")
-- the next run
return rawget(null, "leaked") or rawget(null, 1) or next(null) or "fresh"
