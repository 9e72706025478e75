-- expect: failed: number out of range
return FromJson("1e999999999")
