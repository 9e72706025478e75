-- expect: succeeded: 1970-01-01T00:00:00Z {"a":[1]} 3,4
local function other()
  return "leaked"
end
for name, value in next, _G do
  if type(value) == "function" and name ~= "next" and name ~= "type" then
    _G[name] = other
  end
end
string.format, string.gsub, string.find, table.concat, table.sort, os.date =
  other, other, other, other, other, other
-- the next run
local sorted = { 4, 3 }
table.sort(sorted)
return time.format(0) .. " " .. ToJson(FromJson('{"a":[1]}')) .. " " .. table.concat(sorted, ",")
