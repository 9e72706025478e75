-- expect: failed: '%p' is not available
return string.format("%5p", print)
