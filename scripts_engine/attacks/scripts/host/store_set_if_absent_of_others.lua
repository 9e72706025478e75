-- expect: succeeded: own
-- The honest tenant has this key: whether it does must not show.
local first, second = store.set_if_absent("honest_once", "mine"), store.set_if_absent("honest_once", "mine")
store.delete("honest_once")
return first and not second and "own" or "shared"
