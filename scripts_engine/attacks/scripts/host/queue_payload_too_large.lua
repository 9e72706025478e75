-- expect: succeeded: over 256 KiB
local own, large = params.get("script_id"), ("x"):rep(256 * 1024 + 1)
local _, of_string = pcall(queue.push, own, large)
local _, of_json = pcall(queue.push, own, { large })
return of_string == of_json and of_string
