-- expect: failed: {"code":7}
error({ code = 7 })
