-- expect: succeeded: nothing
for _, prefix in ipairs{ "", "h", "honest", "%", "_", "*", "hones_", "h%", "' OR 1=1 --", "\0", "\255" } do
  for _, key in ipairs(store.list(prefix, 1000)) do
    if key == "honest" then return "found through " .. prefix end
  end
end
return "nothing"
