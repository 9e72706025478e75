-- expect: reply-too-large
return FromJson("[" .. ("[],"):rep(4e5) .. "[]]")
