-- expect: succeeded: refused
for _, name in ipairs{"", ".", "..", "/etc/passwd", "../../../etc/passwd", "Europe/../UTC", "UTC\0", "\255", "localtime", "posix/UTC", "utc", "Europe", ("A"):rep(1e7), "%s", "__missing__"} do
  local ok, problem = pcall(time.in_zone, 0, name)
  if ok or #problem > 200 then return "accepted " .. name end
end
assert(not pcall(time.in_zone, 0) and not pcall(time.in_zone, 0, {}) and not pcall(time.in_zone, -62135596801, "UTC"))
return "refused"
