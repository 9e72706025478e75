-- expect: succeeded: 0
return tostring(select("#", math.randomseed()))
