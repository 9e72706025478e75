-- attack: hang_base64_forever
-- expect: timed-out
-- limits: wall=0.3
local text = ("x"):rep(1e6)
while true do base64.encode(text) end

-- attack: hang_coroutine_churn
-- expect: timed-out
-- limits: wall=0.3
while true do
  coroutine.wrap(function() coroutine.yield() end)()
end

-- attack: hang_coroutine_ping_pong
-- expect: timed-out
-- limits: wall=0.3
local co = coroutine.wrap(function()
  while true do coroutine.yield() end
end)
while true do co() end

-- attack: hang_cpu_limit
-- expect: timed-out
-- limits: wall=10 cpu=1
while true do end

-- attack: hang_empty_loop
-- expect: timed-out
-- limits: wall=0.3
while true do end

-- attack: hang_error_in_xpcall_handler
-- expect: timed-out
-- limits: wall=0.3
while true do
  xpcall(error, function() error("again") end)
end

-- attack: hang_goto_loop
-- expect: timed-out
-- limits: wall=0.3
::again:: goto again

-- attack: hang_gsub_backtracking
-- expect: timed-out
-- limits: wall=0.3
return (("a"):rep(30000):gsub(".-.-.-b", ""))

-- attack: hang_gsub_callback
-- expect: timed-out
-- limits: wall=0.3
return (("x"):gsub("x", function()
  while true do end
end))

-- attack: hang_in_close
-- expect: timed-out
-- limits: wall=0.3
local guard <close> = setmetatable({}, { __close = function()
  while true do end
end })
return "done"

-- attack: hang_in_coroutine
-- expect: timed-out
-- limits: wall=0.3
coroutine.wrap(function()
  while true do end
end)()

-- attack: hang_in_iterator
-- expect: timed-out
-- limits: wall=0.3
for _ in function() return 1 end do end

-- attack: hang_in_pairs_metamethod
-- expect: timed-out
-- limits: wall=0.3
for _ in pairs(setmetatable({}, { __pairs = function()
  while true do end
end })) do end

-- attack: hang_in_tostring_of_error
-- expect: timed-out
-- limits: wall=0.3
error(setmetatable({}, { __tostring = function()
  while true do end
end }))

-- attack: hang_in_tostring_of_log
-- expect: timed-out
-- limits: wall=0.3
log.info(setmetatable({}, {__tostring = function() while true do end end}))

-- attack: hang_in_tostring_of_print
-- expect: timed-out
-- limits: wall=0.3
print(setmetatable({}, { __tostring = function()
  while true do end
end }))

-- attack: hang_json_forever
-- expect: timed-out
-- limits: wall=0.3
local text = "[" .. ("1,"):rep(1e5) .. "1]"
while true do FromJson(text) end

-- attack: hang_next_while_growing
-- expect: timed-out
-- limits: wall=0.3
local t = { 1 }
while true do
  for key in pairs(t) do t[key] = 1 end
end

-- attack: hang_pattern_backtracking
-- expect: timed-out
-- limits: wall=0.3
local text = ("a"):rep(40)
return text:find(("a?"):rep(40) .. text .. "b")

-- attack: hang_pattern_lazy
-- expect: timed-out
-- limits: wall=0.3
return ("x"):rep(20000):find(".-.-.-.-.-.-b")

-- attack: hang_rep_of_nothing
-- expect: timed-out
-- limits: wall=0.3
return (""):rep(1e15)

-- attack: hang_repeat_in_pcall
-- expect: timed-out
-- limits: wall=0.3
while true do
  pcall(function()
    while true do end
  end)
end

-- attack: hang_sort_comparator_never_returns
-- expect: timed-out
-- limits: wall=0.3
table.sort({ 2, 1 }, function()
  while true do end
end)

-- attack: hang_sort_hostile_comparator
-- expect: timed-out
-- limits: wall=0.3
local items = {}
for i = 1, 1000 do items[i] = i end
while true do
  pcall(table.sort, items, function() return true end)
end

-- attack: hang_split
-- expect: timed-out
-- limits: wall=0.3
local text, separator = ("a"):rep(1e7), ("a"):rep(5e6) .. "b"
return #text:split(separator)

-- attack: hang_table_concat_index
-- expect: timed-out
-- limits: wall=0.3
return table.concat(setmetatable({}, {
  __len = function() return 1e9 end,
  __index = function() return "" end,
}))

-- attack: hang_table_insert_len
-- expect: timed-out
-- limits: wall=0.3
table.insert(setmetatable({}, { __len = function() return 1e15 end }), 1, "x")

-- attack: hang_table_move
-- expect: timed-out
-- limits: wall=0.3
table.move({}, 1, 1e15, 2)

-- attack: hang_table_unpack_index
-- expect: failed: too many results to unpack
return table.unpack({}, 1, 1e8)

-- attack: hang_utf8_scan
-- expect: timed-out
-- limits: wall=0.3
local text = ("é"):rep(1e6)
while true do utf8.len(text) end
