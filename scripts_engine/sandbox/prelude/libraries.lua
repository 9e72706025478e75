-- The functions that are loaded when first called, under the names that scripts know.
local private = ...
local later, next = private.later, next

local function library(name, chunk_name, function_names)
  local functions = {}
  for _, function_name in next, function_names do
    functions[function_name] = later(chunk_name, name .. "." .. function_name)
  end
  _G[name] = functions
end

library("base64", "bytes", { "encode", "decode", "urlencode", "urldecode" })
library("crypto", "bytes", { "sha256", "hmac_sha256", "hmac_sha1", "equals", "random_hex" })
library("hex", "bytes", { "encode", "decode" })
library("http", "host", { "request", "get", "post" })
library("secrets", "host", { "get" })
library("store", "host", { "get", "set", "delete", "increment" })
library("time", "time", { "now", "format", "parse" })
library("url", "url", { "encode", "decode", "parse_query" })
library("uuid", "bytes", { "v4" })
