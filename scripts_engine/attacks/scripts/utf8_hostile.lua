-- expect: failed: invalid UTF-8 code
for _ in utf8.codes("\xff\xff") do end
