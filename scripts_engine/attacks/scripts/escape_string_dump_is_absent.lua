-- expect: succeeded: absent
return rawget(string, "dump") == nil and ("").dump == nil and "absent" or "there"
