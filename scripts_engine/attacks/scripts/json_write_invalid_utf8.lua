-- expect: failed: not valid UTF-8
return ToJson("\xff")
