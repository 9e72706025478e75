-- expect: succeeded: unharmed
local hostile = { 0 / 0, math.huge, -1, 1e300, {}, "\0", "\255", ("x"):rep(1e5), function() end, true, "'; --" }
-- What is taken waits for so long that it never runs.
local month = 2592000
local own = params.get("script_id")
for _, a in ipairs(hostile) do
  for _, b in ipairs(hostile) do
    pcall(queue.push, a, b)
    pcall(queue.push, b, a, b)
    pcall(queue.push, a, "", { key = b, attempts = 2.5 })
  end
  if pcall(queue.push, own, "", { delay = a }) or pcall(queue.push, own, "", { attempts = a }) then
    return "taken: " .. tostring(a)
  end
  pcall(queue.push, own, a, { delay = month })
  pcall(queue.push, own, "", { delay = month, key = a })
end
local deep = {}
deep[1] = deep
local forged = setmetatable({ delay = month }, { __index = function() return own end, __tostring = error })
pcall(queue.push, own, deep, forged)
pcall(queue.push, own, forged, forged)
pcall(queue.push, forged, "")
local nobody = "00000000-0000-0000-0000-000000000000"
return not pcall(queue.push, nobody, "") and not pcall(queue.push) and "unharmed"
