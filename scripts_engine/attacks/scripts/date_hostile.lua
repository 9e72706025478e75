-- expect: failed: invalid conversion specifier
return os.date("%Ez")
