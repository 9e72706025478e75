-- expect: succeeded: absent
return rawget(_G, "collectgarbage") == nil and "absent" or "there"
