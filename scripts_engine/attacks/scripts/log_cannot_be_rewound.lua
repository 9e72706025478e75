-- expect: succeeded: done
log.info("kept")
log = nil
print = nil
return "done"
