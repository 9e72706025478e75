-- expect: timed-out
-- limits: wall=0.3
local items = {}
for i = 1, 1000 do items[i] = i end
while true do
  pcall(table.sort, items, function() return true end)
end
