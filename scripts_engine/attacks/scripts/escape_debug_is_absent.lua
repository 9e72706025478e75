-- expect: succeeded: absent
return rawget(_G, "debug") == nil and "absent" or "there"
