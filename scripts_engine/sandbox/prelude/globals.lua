-- Takes away what scripts must not have.
local loaded, next = package.loaded, next

local kept = {}
for name in
  ([[
    _G _VERSION assert error getmetatable ipairs next pairs pcall rawequal rawget rawlen rawset
    select setmetatable tonumber tostring type xpcall
    coroutine math os string table utf8
    FromJson Reply ToJson array base64 crypto hex http log null object params print secrets store
    time url uuid
  ]]):gmatch("%S+")
do
  kept[name] = true
end

for name in next, _G do
  if not kept[name] then
    _G[name] = nil
  end
end

-- Lua looks here for the names of functions in its messages.
for name in next, loaded do
  loaded[name] = nil
end
loaded._G = _G
for _, name in next, { "coroutine", "math", "os", "string", "table", "utf8" } do
  loaded[name] = _G[name]
end
