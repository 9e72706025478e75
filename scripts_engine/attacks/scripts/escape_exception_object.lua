-- expect: succeeded: string string string
local kinds = {}
for i, call in ipairs({
  function() return base64.decode("%") end,
  function() return hex.decode("zz") end,
  function() return http.get("http://example.org/") end,
}) do
  local _, problem = pcall(call)
  kinds[i] = type(problem)
end
return table.concat(kinds, " ")
