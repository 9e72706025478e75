-- expect: failed: control character
local reply = Reply({ headers = { ["X-A"] = "a" } })
reply.headers["X-A"] = "a\nb"
return reply
