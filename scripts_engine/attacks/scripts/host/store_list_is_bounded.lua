-- expect: succeeded: bounded
for i = 1, 20 do store.set(("k"):rep(250) .. i, 1, 60) end
for _, limit in ipairs{ 0, -1, 1001, 1e9, 1.5, 0 / 0, math.huge, math.maxinteger, math.mininteger } do
  if pcall(store.list, "", limit) then return "listed " .. limit end
end
return #store.list("kkk", 1000) <= 1000 and "bounded" or "endless"
