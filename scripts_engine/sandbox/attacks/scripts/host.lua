-- attack: host_absent_http
-- expect: failed: http is not available here
return http.get("http://127.0.0.1/")

-- attack: host_absent_queue
-- expect: failed: queue is not available here
queue.push("a", "b")

-- attack: host_absent_secrets
-- expect: failed: secrets is not available here
return secrets.get("a")

-- attack: host_absent_store
-- expect: failed: store is not available here
store.set("a", 1)

-- attack: host_call_in_coroutine
-- expect: failed: store is not available here
return coroutine.wrap(function() return store.get("a") end)()

-- attack: host_calls_past_the_limit
-- expect: failed: more than 1,000 host calls in a run
while true do
  pcall(store.get, "key")
end

-- attack: host_cyclic_argument
-- expect: failed: a table holds itself
local t = {}
t.t = t
store.set("key", t)

-- attack: host_deep_headers
-- expect: failed: header X: string expected
http.request({ url = "http://example.org/", headers = { X = { {} } } })

-- attack: host_hostile_arguments
-- expect: succeeded: refused
for _, call in ipairs({ http.request, http.get, http.head, http.post, http.put, http.patch, http.delete, store.get, store.set,
    store.set_if_absent, store.delete, store.increment, store.list, secrets.get }) do
  for _, value in ipairs({ false, 0, {}, print, 0 / 0, coroutine.create(print) }) do
    assert(not pcall(call, value, value, value))
  end
end
return "refused"

-- attack: host_huge_argument
-- expect: failed: over 8388608
return secrets.get(("x"):rep(9e6))
