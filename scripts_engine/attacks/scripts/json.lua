-- attack: json_deep
-- expect: failed: nested deeper than 128 levels at line 1
return FromJson(("["):rep(1e6))

-- attack: json_deep_objects
-- expect: failed: nested deeper than 128 levels
return FromJson(('{"a":'):rep(1e5))

-- attack: json_huge_exponent
-- expect: failed: number out of range
return FromJson("1e999999999")

-- attack: json_invalid_utf8
-- expect: failed: invalid UTF-8 at line 1 column 2
return FromJson('"\xff"')

-- attack: json_long_fraction
-- expect: succeeded: 0.1
return FromJson("0." .. ("1"):rep(1e5)) < 0.12 and "0.1"

-- attack: json_long_number
-- expect: failed: integer out of the 64-bit range
return FromJson(("1"):rep(1e6))

-- attack: json_many_escapes
-- expect: succeeded: 100000
return tostring(#FromJson('"' .. ("\\n"):rep(1e5) .. '"'))

-- attack: json_many_values
-- expect: reply-too-large
return FromJson("[" .. ("[],"):rep(4e5) .. "[]]")

-- attack: json_unterminated
-- expect: failed: unterminated string
return FromJson('"' .. ("\\"):rep(1e6))

-- attack: json_write_invalid_utf8
-- expect: failed: not valid UTF-8
return ToJson("\xff")
