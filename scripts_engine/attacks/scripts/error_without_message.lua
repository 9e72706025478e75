-- expect: failed: nil
error()
