-- expect: succeeded: absent
return rawget(_G, "io") == nil and "absent" or "there"
