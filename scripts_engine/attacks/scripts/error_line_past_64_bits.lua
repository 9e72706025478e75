-- expect: failed: attack:99999999999999999999999: boom
error("attack:99999999999999999999999: boom", 0)
