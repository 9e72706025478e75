-- expect: succeeded: absent
return rawget(_G, "warn") == nil and "absent" or "there"
