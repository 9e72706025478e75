-- expect: succeeded: bounded
local deep, wide, keys = {}, {}, {}
for _ = 1, 1e5 do deep = {deep, x = deep} end
for i = 1, 3e5 do wide[i] = wide; keys["k" .. i % 1e5] = keys end
local shared = {("x"):rep(1e7)}
for _ = 1, 100 do shared = {shared, shared, shared, [shared] = shared} end
local total = #inspect(deep) + #inspect(wide) + #inspect(keys) + #inspect(shared) + #inspect(("\n"):rep(1e7))
return total <= 5 * 65540 and "bounded"
