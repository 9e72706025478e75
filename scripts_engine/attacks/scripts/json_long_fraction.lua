-- expect: succeeded: 0.1
return FromJson("0." .. ("1"):rep(1e5)) < 0.12 and "0.1"
