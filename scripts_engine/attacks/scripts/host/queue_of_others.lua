-- expect: failed: queue.push: there is no script with this id or name
queue.push("honest", "")
