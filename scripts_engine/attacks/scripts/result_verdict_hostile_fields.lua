-- expect: succeeded: refused
local hostile = setmetatable({}, {
  __index = function() while true do end end,
  __pairs = function() while true do end end,
  __lt = function() return true end,
  __le = function() return true end,
})
local values = { hostile, 0 / 0, math.huge, -math.huge, math.mininteger, -0.1, 86400.1, "1", {}, true, print }
for _, value in ipairs(values) do
  for _, field in ipairs({ "after", "reason", "status" }) do
    local is_text = field == "reason" and type(value) == "string"
    if pcall(Retry, { [field] = value }) and not is_text then
      return field .. " taken: " .. tostring(value)
    end
    if pcall(Fail, { [field] = value }) and not is_text then
      return field .. " taken: " .. tostring(value)
    end
  end
end
Retry(hostile)
return not pcall(Retry) and not pcall(Fail, "reason") and "refused"
