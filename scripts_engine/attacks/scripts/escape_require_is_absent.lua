-- expect: succeeded: absent
return rawget(_G, "require") == nil and "absent" or "there"
