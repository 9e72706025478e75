-- attack: state_coroutine_left_behind
-- expect: succeeded: done
left = coroutine.wrap(function()
  local guard <close> = setmetatable({}, { __close = function() while true do end end })
  coroutine.yield()
end)
left()
return "done"

-- attack: state_globals
-- expect: succeeded: fresh
local answer = leaked or "fresh"
leaked = "leaked"
return answer

-- attack: state_library
-- expect: succeeded: fresh
local answer = string.leaked or "fresh"
string.leaked = "leaked"
math.random = nil
return answer

-- attack: state_null
-- expect: succeeded: nil
local answer = tostring(rawget(null, "leaked"))
rawset(null, "leaked", "leaked")
return answer

-- attack: state_random_is_new
-- expect: succeeded: different
math.randomseed(1)
local a = math.random(0)
math.randomseed()
return a ~= math.random(0) and "different" or "same"

-- attack: state_string_index
-- expect: succeeded: nil
local answer = tostring(("").leaked)
string.leaked = "leaked"
return answer
