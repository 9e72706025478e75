-- expect: succeeded: running true fresh
main = coroutine.running()
local by_thread = setmetatable({}, { __mode = "k" })
by_thread[main] = "leaked"
pcall(coroutine.close, main)
pcall(coroutine.resume, main)
coroutine.wrap(function() pcall(coroutine.close, main) end)()
local guard <close> = setmetatable({}, { __close = function() leaked = "leaked" end })
-- the next run
local thread, is_main = coroutine.running()
return coroutine.status(thread) .. " " .. tostring(is_main) .. " " .. (leaked or "fresh")
