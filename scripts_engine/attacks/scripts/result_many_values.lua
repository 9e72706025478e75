-- expect: succeeded: 1
return "1", table.unpack({}, 1, 1e5)
