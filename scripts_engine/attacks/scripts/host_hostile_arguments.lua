-- expect: succeeded: refused
for _, call in ipairs({ http.request, http.get, http.head, http.post, http.put, http.patch, http.delete, store.get, store.set,
    store.set_if_absent, store.delete, store.increment, store.list, secrets.get }) do
  for _, value in ipairs({ false, 0, {}, print, 0 / 0, coroutine.create(print) }) do
    assert(not pcall(call, value, value, value))
  end
end
return "refused"
