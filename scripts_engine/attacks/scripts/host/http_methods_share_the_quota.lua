-- expect: succeeded: 20 calls
local names, counted, problem = { "get", "head", "post", "put", "patch", "delete" }, 0, nil
for i = 1, 40 do
  local _, e = pcall(http[names[i % 6 + 1]], "http://127.0.0.1/")
  if not e:find("more than 20 calls in a run", 1, true) then counted = counted + 1 end
end
return counted .. " calls"
