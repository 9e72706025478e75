-- expect: succeeded: still here
for _, library in pairs({ crypto, base64, hex, time, uuid, params }) do
  for _, callable in pairs(library) do
    local co = coroutine.create(callable)
    coroutine.resume(co, "x", "y")
    coroutine.close(co)
  end
end
return "still here"
