-- expect: succeeded: absent
return rawget(_G, "load") == nil and "absent" or "there"
