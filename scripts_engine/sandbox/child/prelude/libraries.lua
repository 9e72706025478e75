-- The library functions that load their chunk on first use, under their public names.
local private = ...
local later = private.later
local bytes_function, host_function = later("bytes"), later("host")
local time_function, url_function = later("time"), later("url")

base64 = {
  encode = bytes_function("base64.encode"),
  decode = bytes_function("base64.decode"),
  urlencode = bytes_function("base64.urlencode"),
  urldecode = bytes_function("base64.urldecode"),
}
crypto = {
  sha256 = bytes_function("crypto.sha256"),
  hmac_sha256 = bytes_function("crypto.hmac_sha256"),
  hmac_sha1 = bytes_function("crypto.hmac_sha1"),
  equals = bytes_function("crypto.equals"),
  random_hex = bytes_function("crypto.random_hex"),
}
hex = {
  encode = bytes_function("hex.encode"),
  decode = bytes_function("hex.decode"),
}
http = {
  request = host_function("http.request"),
  get = host_function("http.get"),
  post = host_function("http.post"),
}
secrets = { get = host_function("secrets.get") }
store = {
  get = host_function("store.get"),
  set = host_function("store.set"),
  delete = host_function("store.delete"),
  increment = host_function("store.increment"),
}
time = {
  now = time_function("time.now"),
  format = time_function("time.format"),
  parse = time_function("time.parse"),
}
url = {
  encode = url_function("url.encode"),
  decode = url_function("url.decode"),
  parse_query = url_function("url.parse_query"),
}
uuid = { v4 = bytes_function("uuid.v4") }

Reply = later("reply")("Reply")
private.list_globals = later("listing")("list_globals")
private.list_names = later("audit")("list_names")
