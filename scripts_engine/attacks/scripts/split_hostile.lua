-- expect: succeeded: refused
local refused = {
  pcall(string.split), pcall(string.split, "a"), pcall(string.split, "a", ""), pcall(string.split, 1, "1"),
  pcall(string.split, {}, ","), pcall(string.split, "a", ",", -1), pcall(string.split, "a", ",", 0),
  pcall(string.split, "a", ",", 1.5), pcall(string.split, "a", ",", 0/0), pcall(string.split, "a", ",", "2"),
  pcall(string.split, "a", ",", math.mininteger), pcall(string.split, setmetatable({}, {__index = string}), ","),
}
for i = 1, 12 do if refused[i] then return "accepted " .. i end end
local huge = ("a"):split(("x"):rep(1e7), math.huge)
return #("\0\255\0"):split("\0") == 3 and #huge == 1 and "refused"
