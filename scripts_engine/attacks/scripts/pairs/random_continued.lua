-- expect: succeeded: unknown
-- The run that knows the state of the generator would know what the next run draws.
math.randomseed(42)
for _ = 1, 100 do
  math.random(0)
end
-- the next run
local first, second = math.random(0), math.random(0)
math.randomseed(42)
local before
for _ = 1, 1000 do
  local value = math.random(0)
  if before == first and value == second then
    return "known"
  end
  before = value
end
return "unknown"
