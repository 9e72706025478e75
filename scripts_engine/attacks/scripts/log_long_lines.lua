-- expect: succeeded: done
for _ = 1, 100 do print(("x"):rep(1e6)) end
return "done"
