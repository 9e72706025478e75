-- expect: succeeded: absent
return rawget(_G, "loadstring") == nil and "absent" or "there"
