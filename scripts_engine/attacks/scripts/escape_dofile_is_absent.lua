-- expect: succeeded: absent
return rawget(_G, "dofile") == nil and "absent" or "there"
