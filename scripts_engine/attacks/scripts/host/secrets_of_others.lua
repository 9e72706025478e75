-- expect: succeeded: nothing
for _, name in ipairs{ "SECRET_KEY", "MOONHOOK_PEPPERS", "DATABASE_URL", "EMAIL_URL", "*", "%", "", "../x",
    "HONEST_KEY", "HONEST_KEY\0", "honest_key", "' OR 1=1 --" } do
  if secrets.get(name) then return "found " .. name end
end
return "nothing"
