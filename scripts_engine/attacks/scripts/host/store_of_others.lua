-- expect: succeeded: nothing
return store.get("honest") == nil and "nothing" or "found"
