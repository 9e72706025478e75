-- expect: succeeded: absent
for _, name in ipairs({ "execute", "exit", "getenv", "remove", "rename", "tmpname", "setlocale" }) do
  assert(os[name] == nil, name)
end
return "absent"
