-- expect: succeeded: absent
return rawget(_G, "python") == nil and "absent" or "there"
