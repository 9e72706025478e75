-- expect: succeeded: absent
return rawget(_G, "loadfile") == nil and "absent" or "there"
