-- attack: queue_hostile_arguments
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

-- attack: queue_of_others
-- expect: failed: queue.push: there is no script with this id or name
queue.push("honest", "")

-- attack: queue_payload_too_large
-- expect: succeeded: over 256 KiB
local own, large = params.get("script_id"), ("x"):rep(256 * 1024 + 1)
local _, of_string = pcall(queue.push, own, large)
local _, of_json = pcall(queue.push, own, { large })
return of_string == of_json and of_string

-- attack: queue_pushes_are_counted
-- expect: failed: queue.push: more than 20 pushes in a run
for _ = 1, 21 do
  queue.push(params.get("script_id"), "", { delay = 2592000 })
end
