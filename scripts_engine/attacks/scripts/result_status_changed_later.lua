-- expect: failed: status must be
local reply = Reply({})
reply.status = 1e300
return reply
