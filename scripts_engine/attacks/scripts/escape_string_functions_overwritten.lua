-- expect: succeeded: {"a":"text"}
for name in pairs(string) do string[name] = function() error("mine") end end
for name in pairs(table) do table[name] = function() error("mine") end end
return { a = "text" }
