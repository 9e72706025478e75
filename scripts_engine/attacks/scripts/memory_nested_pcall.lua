-- expect: failed: stack overflow
local function nest()
  return pcall(nest) and error("stack overflow at the bottom")
end
nest()
error("stack overflow was caught")
