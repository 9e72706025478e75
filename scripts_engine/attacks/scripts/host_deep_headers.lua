-- expect: failed: header X: string expected
http.request({ url = "http://example.org/", headers = { X = { {} } } })
