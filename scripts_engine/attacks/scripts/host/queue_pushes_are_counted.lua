-- expect: failed: queue.push: more than 20 pushes in a run
for _ = 1, 21 do
  queue.push(params.get("script_id"), "", { delay = 2592000 })
end
