-- expect: succeeded: {"a":[1]}
local G, read, type = _G, FromJson, type
for name in pairs(G) do
  if type(G[name]) ~= "number" then G[name] = function() while true do end end end
end
return read('{"a": [1]}')
