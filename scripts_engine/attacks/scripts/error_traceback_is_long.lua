-- expect: failed: deep
local name = ("x"):rep(20000)
local object = {}
object[name] = function() error("deep") end
local calls = {}
for i = 1, 20 do
  local inner = object[name]
  object[name] = function() local _ = object; inner() return 1 end
end
object[name]()
