-- expect: succeeded: survived
local ok = pcall(function()
  local t = {}
  while true do t[#t + 1] = ("x"):rep(1e5) .. #t end
end)
return ok and "no limit" or "survived"
