-- expect: out-of-memory
local text = "\0\255<&\x27\""
while true do text = html.escape(text:rep(4)) end
