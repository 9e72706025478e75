-- expect: failed: more than 1,000 host calls in a run
while true do
  pcall(store.get, "key")
end
