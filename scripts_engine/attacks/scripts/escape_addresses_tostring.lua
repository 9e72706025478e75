-- expect: succeeded: table function thread
return table.concat({ tostring({}), tostring(print), tostring(coroutine.create(print)) }, " ")
