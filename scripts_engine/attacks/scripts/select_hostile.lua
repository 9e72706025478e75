-- expect: failed: index out of range
return select(math.mininteger, 1)
