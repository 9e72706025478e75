-- expect: failed: queue is not available here
queue.push("a", "b")
