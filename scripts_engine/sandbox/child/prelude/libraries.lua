-- The library functions that load their chunk on first use, under their public names. Each run gets
-- copies of these tables, and puts its own functions into `log` and `params`.
local shared = ...
local later = shared.later

base64 = {
  encode = later("base64.encode"),
  decode = later("base64.decode"),
  urlencode = later("base64.urlencode"),
  urldecode = later("base64.urldecode"),
}
crypto = {
  md5 = later("crypto.md5"),
  sha1 = later("crypto.sha1"),
  sha256 = later("crypto.sha256"),
  sha512 = later("crypto.sha512"),
  hmac_sha1 = later("crypto.hmac_sha1"),
  hmac_sha256 = later("crypto.hmac_sha256"),
  hmac_sha512 = later("crypto.hmac_sha512"),
  equals = later("crypto.equals"),
  random_hex = later("crypto.random_hex"),
}
hex = {
  encode = later("hex.encode"),
  decode = later("hex.decode"),
}
html = { escape = later("html.escape") }
http = {
  request = later("http.request"),
  get = later("http.get"),
  head = later("http.head"),
  post = later("http.post"),
  put = later("http.put"),
  patch = later("http.patch"),
  delete = later("http.delete"),
}
log = {}
params = { json = later("params.json"), form = later("params.form") }
queue = { push = later("queue.push") }
secrets = { get = later("secrets.get") }
store = {
  get = later("store.get"),
  set = later("store.set"),
  set_if_absent = later("store.set_if_absent"),
  delete = later("store.delete"),
  increment = later("store.increment"),
  list = later("store.list"),
}
string.split = later("string.split")
string.trim = later("string.trim")
time = {
  now = later("time.now"),
  format = later("time.format"),
  parse = later("time.parse"),
  add = later("time.add"),
  in_zone = later("time.in_zone"),
}
url = {
  encode = later("url.encode"),
  decode = later("url.decode"),
  parse = later("url.parse"),
  parse_query = later("url.parse_query"),
  build_query = later("url.build_query"),
}
uuid = { v4 = later("uuid.v4") }

inspect = later("inspect")
Fail = later("Fail")
Reply = later("Reply")
Retry = later("Retry")
require = later("require")
shared.table_in_log = later("table_in_log")
