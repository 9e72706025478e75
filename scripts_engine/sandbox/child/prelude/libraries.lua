-- The library functions that load their chunk on first use, under their public names.
local private = ...
local later, single = private.later, private.single
local of_base64, of_crypto, of_hex = later("base64."), later("crypto."), later("hex.")
local of_http, of_store, of_time, of_url =
  later("http."), later("store."), later("time."), later("url.")

base64 = {
  encode = of_base64("encode"),
  decode = of_base64("decode"),
  urlencode = of_base64("urlencode"),
  urldecode = of_base64("urldecode"),
}
crypto = {
  md5 = of_crypto("md5"),
  sha1 = of_crypto("sha1"),
  sha256 = of_crypto("sha256"),
  sha512 = of_crypto("sha512"),
  hmac_sha1 = of_crypto("hmac_sha1"),
  hmac_sha256 = of_crypto("hmac_sha256"),
  hmac_sha512 = of_crypto("hmac_sha512"),
  equals = of_crypto("equals"),
  random_hex = of_crypto("random_hex"),
}
hex = {
  encode = of_hex("encode"),
  decode = of_hex("decode"),
}
html = { escape = single("html.escape") }
http = {
  request = of_http("request"),
  get = of_http("get"),
  head = of_http("head"),
  post = of_http("post"),
  put = of_http("put"),
  patch = of_http("patch"),
  delete = of_http("delete"),
}
secrets = { get = single("secrets.get") }
store = {
  get = of_store("get"),
  set = of_store("set"),
  set_if_absent = of_store("set_if_absent"),
  delete = of_store("delete"),
  increment = of_store("increment"),
  list = of_store("list"),
}
string.split = single("string.split")
string.trim = single("string.trim")
time = {
  now = of_time("now"),
  format = of_time("format"),
  parse = of_time("parse"),
  add = of_time("add"),
  in_zone = of_time("in_zone"),
}
url = {
  encode = of_url("encode"),
  decode = of_url("decode"),
  parse = of_url("parse"),
  parse_query = of_url("parse_query"),
  build_query = of_url("build_query"),
}
uuid = { v4 = single("uuid.v4") }

inspect = single("inspect")
Reply = single("Reply")
