-- expect: succeeded: survived
local held = {}
pcall(function()
  while true do held[#held + 1] = ("x"):rep(1e4) .. #held end
end)
for _ = 1, 100 do
  pcall(function() return base64.encode(("y"):rep(1e4)) end)
end
held = nil
return "survived"
