-- expect: succeeded: only strings
for _, name in ipairs({ "sha256", "equals", "random_hex", "hmac_sha256", "hmac_sha1" }) do
  for _, value in ipairs({ false, 0, 1e300, -1, {}, print, ("x"):rep(10), 0 / 0, math.huge }) do
    local ok, problem = pcall(crypto[name], value, value, value)
    assert(ok or type(problem) == "string", name)
  end
end
return "only strings"
