-- expect: succeeded: none
local seen = {}
local function walk(value)
  assert(type(value) ~= "userdata", "userdata")
  if type(value) == "table" and not seen[value] then
    seen[value] = true
    for key, item in next, value do
      walk(key)
      walk(item)
    end
    walk(getmetatable(value))
  end
end
walk(_G)
walk({ coroutine.running() })
return "none"
