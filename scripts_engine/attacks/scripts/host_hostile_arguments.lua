-- expect: succeeded: refused
for _, call in ipairs({ http.request, http.get, http.post, store.get, store.set, store.delete, store.increment, secrets.get }) do
  for _, value in ipairs({ false, 0, {}, print, 0 / 0, coroutine.create(print) }) do
    assert(not pcall(call, value, value, value))
  end
end
return "refused"
