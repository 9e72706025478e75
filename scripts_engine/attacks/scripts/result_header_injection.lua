-- expect: failed: control character
return Reply({ headers = { ["X-A"] = "a\r\nSet-Cookie: b=c" } })
