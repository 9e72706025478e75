-- expect: succeeded: table function
return string.format("%s %s", {}, print)
