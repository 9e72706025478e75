-- expect: succeeded: unknown
math.randomseed(42)
-- the next run
local first = math.random(0)
math.randomseed(42)
for _ = 1, 100 do
  if math.random(0) == first then
    return "known"
  end
end
return "unknown"
