-- expect: succeeded: nil nil x
function string.shout(text)
  return text:upper() .. "!"
end
string.leaked = ("x"):shout()
string.rep = nil
setmetatable(string, { __index = { deep = "leaked" } })
-- the next run
return tostring(("x").leaked or ("x").shout) .. " " .. tostring(("x").deep) .. " " .. ("x"):rep(1)
