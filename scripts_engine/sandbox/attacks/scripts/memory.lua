-- attack: memory_before_python_call
-- expect: succeeded: survived
local held = {}
pcall(function()
  while true do held[#held + 1] = ("x"):rep(1e4) .. #held end
end)
for _ = 1, 100 do
  pcall(function() return base64.encode(("y"):rep(1e4)) end)
end
held = nil
return "survived"

-- attack: memory_build_query
-- expect: out-of-memory
local t = {}
for i = 1, 64 do t["k" .. i] = ("\255"):rep(1e6) end
return #url.build_query(t)

-- attack: memory_caught_and_retried
-- expect: timed-out
-- limits: wall=0.3
while true do
  pcall(function() return ("x"):rep(1e8) end)
end

-- attack: memory_caught_and_survived
-- expect: succeeded: survived
local ok = pcall(function()
  local t = {}
  while true do t[#t + 1] = ("x"):rep(1e5) .. #t end
end)
return ok and "no limit" or "survived"

-- attack: memory_deep_recursion
-- expect: out-of-memory
local function deep() return 1 + deep() end
return deep()

-- attack: memory_deep_source
-- expect: failed: overflow
return ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))

-- attack: memory_growing_table
-- expect: out-of-memory
local t = {}
while true do t[#t + 1] = {} end

-- attack: memory_gsub_blowup
-- expect: out-of-memory
return (("x"):rep(1e5):gsub("x", ("y"):rep(1e4)))

-- attack: memory_html_escape
-- expect: out-of-memory
local text = "\0\255<&\x27\""
while true do text = html.escape(text:rep(4)) end

-- attack: memory_long_string
-- expect: out-of-memory
local s = "x"
while true do s = s .. s end

-- attack: memory_many_coroutines
-- expect: out-of-memory
local t = {}
while true do
  t[#t + 1] = coroutine.create(function() end)
end

-- attack: memory_nested_closures
-- expect: out-of-memory
local f = function() end
while true do
  local g = f
  f = function() return g end
end

-- attack: memory_nested_coroutines
-- expect: failed: C stack overflow
local function nest()
  return coroutine.wrap(nest)()
end
return nest()

-- attack: memory_nested_pattern
-- expect: failed: pattern too complex
return (("x"):rep(3e5):find(("x?"):rep(3e5) .. "y"))

-- attack: memory_nested_pcall
-- expect: failed: stack overflow
local function nest()
  return pcall(nest) and error("stack overflow at the bottom")
end
nest()
error("stack overflow was caught")

-- attack: memory_python_copies
-- expect: out-of-memory
local kept = {}
local text = ("x"):rep(1e6)
while true do kept[#kept + 1] = hex.encode(text) end

-- attack: memory_python_result_over_limit
-- expect: out-of-memory
local text = ("x"):rep(3e7)
return hex.encode(text)

-- attack: memory_recursion_in_metamethod
-- expect: failed: stack overflow
local t = setmetatable({}, {})
getmetatable(t).__index = function(self, key) return self[key] end
return t.x

-- attack: memory_rep
-- expect: out-of-memory
return ("x"):rep(1e9)

-- attack: memory_rep_too_long
-- expect: failed: resulting string too large
return ("x"):rep(1e18)

-- attack: memory_split
-- expect: out-of-memory
local parts = {}
for i = 1, 100 do parts[i] = (","):rep(5e6):split(",") end

-- attack: memory_string_format
-- expect: out-of-memory
local s = ("x"):rep(3e7)
return string.format("%s%s%s", s, s, s)

-- attack: memory_string_pack
-- expect: out-of-memory
return string.pack("s4s4s4", ("x"):rep(2e7), ("y"):rep(2e7), ("z"):rep(2e7))

-- attack: memory_table_concat
-- expect: out-of-memory
local t, piece = {}, ("x"):rep(1e6)
for i = 1, 1000 do t[i] = piece end
return table.concat(t)
