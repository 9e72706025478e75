-- expect: succeeded: different
math.randomseed(1)
local a = math.random(0)
math.randomseed()
return a ~= math.random(0) and "different" or "same"
