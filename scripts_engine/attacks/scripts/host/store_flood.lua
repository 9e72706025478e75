-- expect: succeeded: bounded
-- limits: wall=20
local count = 0
local ok, problem = pcall(function()
  for i = 1, 1e9 do
    store.set("flood" .. i, i, 60)
    count = count + 1
  end
end)
return not ok and count <= 1000 and "bounded" or "endless"
