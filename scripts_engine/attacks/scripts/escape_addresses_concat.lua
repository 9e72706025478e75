-- expect: failed: attempt to concatenate a table value
return "" .. {}
