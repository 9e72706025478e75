-- expect: succeeded: absent
return rawget(_G, "package") == nil and "absent" or "there"
