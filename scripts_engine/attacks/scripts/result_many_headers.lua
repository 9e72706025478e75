-- expect: failed: more than 100 headers
local headers = {}
for i = 1, 1000 do headers["X-" .. i] = "a" end
return Reply({ headers = headers })
