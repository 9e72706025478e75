-- expect: succeeded: done
print("\xff\0\27[31m")
log.error(nil, null, {}, print)
return "done"
