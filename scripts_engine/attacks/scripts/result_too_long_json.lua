-- expect: reply-too-large
return { ("x"):rep(1024 * 1024) }
