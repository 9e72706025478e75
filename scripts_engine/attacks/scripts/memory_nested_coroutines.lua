-- expect: failed: C stack overflow
local function nest()
  return coroutine.wrap(nest)()
end
return nest()
