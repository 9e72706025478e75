-- expect: failed: secrets is not available here
return secrets.get("a")
