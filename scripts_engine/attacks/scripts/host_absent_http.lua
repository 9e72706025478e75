-- expect: failed: http is not available here
return http.get("http://127.0.0.1/")
