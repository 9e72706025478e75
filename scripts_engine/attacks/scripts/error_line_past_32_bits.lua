-- expect: failed: attack:9999999999: boom
error("attack:9999999999: boom", 0)
