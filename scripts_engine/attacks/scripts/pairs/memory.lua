-- expect: succeeded: 650000
-- limits: memory=1
hoard = {}
for index = 1, 8 do
  hoard[index] = ("leak" .. index):rep(16000)
end
-- the next run
local whole = {}
for index = 1, 10 do
  whole[index] = ("y"):rep(65000 - #tostring(index)) .. index
end
local bytes = 0
for _, each in ipairs(whole) do
  bytes = bytes + #each
end
return tostring(bytes)
