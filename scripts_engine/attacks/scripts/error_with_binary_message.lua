-- expect: failed: boom
error("boom\xff\0")
