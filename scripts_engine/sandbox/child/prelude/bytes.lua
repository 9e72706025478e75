-- crypto, base64, hex and uuid, implemented by Python's libraries.
local private = ...
local call_python, expect, functions = private.call_python, private.expect, private.functions
local error, format, math_type, next, unpack =
  error, string.format, math.type, next, string.unpack

local MAX_RANDOM_BYTES = 1024

-- Makes a function of one string; Python answers false and a message for an invalid string.
local function of_string(operation)
  return function(data)
    expect("string", data, operation)
    local result, problem = call_python(operation, data)
    if not result then
      error(operation .. ": " .. problem, 2)
    end
    return result
  end
end

local function hmac(operation)
  return function(key, data)
    expect("string", key, operation .. ": key")
    expect("string", data, operation .. ": data")
    return (call_python(operation, key, data))
  end
end

for _, operation in
  next,
  {
    "crypto.md5",
    "crypto.sha1",
    "crypto.sha256",
    "crypto.sha512",
    "base64.encode",
    "base64.decode",
    "base64.urlencode",
    "base64.urldecode",
    "hex.encode",
    "hex.decode",
  }
do
  functions[operation] = of_string(operation)
end
functions["crypto.hmac_sha1"] = hmac("crypto.hmac_sha1")
functions["crypto.hmac_sha256"] = hmac("crypto.hmac_sha256")
functions["crypto.hmac_sha512"] = hmac("crypto.hmac_sha512")

functions["crypto.equals"] = function(a, b)
  expect("string", a, "crypto.equals")
  expect("string", b, "crypto.equals")
  return (call_python("crypto.equals", a, b))
end

functions["crypto.random_hex"] = function(bytes)
  if math_type(bytes) ~= "integer" or bytes < 1 or bytes > MAX_RANDOM_BYTES then
    error("crypto.random_hex: a number of bytes from 1 to " .. MAX_RANDOM_BYTES .. " expected", 2)
  end
  return (call_python("hex.encode", (call_python("random", bytes))))
end

functions["uuid.v4"] = function()
  local high, low = unpack(">I8I8", (call_python("random", 16)))
  high = high & 0xFFFFFFFFFFFF0FFF | 0x4000
  low = low & 0x3FFFFFFFFFFFFFFF | (1 << 63)
  return format(
    "%08x-%04x-%04x-%04x-%012x",
    high >> 32,
    high >> 16 & 0xFFFF,
    high & 0xFFFF,
    low >> 48 & 0xFFFF,
    low & 0xFFFFFFFFFFFF
  )
end
