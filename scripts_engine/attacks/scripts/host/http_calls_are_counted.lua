-- expect: succeeded: more than 20 calls in a run
local problem
for _ = 1, 25 do
  _, problem = pcall(http.get, "http://127.0.0.1/")
end
return problem
