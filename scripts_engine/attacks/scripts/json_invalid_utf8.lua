-- expect: failed: invalid UTF-8 at line 1 column 2
return FromJson('"\xff"')
