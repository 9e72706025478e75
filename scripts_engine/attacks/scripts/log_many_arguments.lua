-- expect: succeeded: done
print(table.unpack({}, 1, 1e5))
return "done"
