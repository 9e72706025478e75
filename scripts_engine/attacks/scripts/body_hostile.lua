-- expect: succeeded: refused
local function spin() while true do end end
assert(next(params.form()) == nil and next(params.form(setmetatable({}, {__index = spin, __pairs = spin}))) == nil)
return not pcall(params.json) and not pcall(params.form, 5) and not pcall(params.form, {multi = 1}) and "refused"
