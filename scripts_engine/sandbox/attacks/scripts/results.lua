-- attack: result_coroutine
-- expect: failed: a thread has no JSON form
return coroutine.create(print)

-- attack: result_cycle
-- expect: failed: a table holds itself
local t = {}
t.t = { t }
return t

-- attack: result_forged_reply_mark
-- expect: succeeded: {"status":101}
return setmetatable({ status = 101 }, getmetatable(Reply({})) or nil)

-- attack: result_forged_verdict
-- expect: succeeded: {"after":0}
return setmetatable({ after = 0 }, getmetatable(Retry({})) or nil)

-- attack: result_function
-- expect: failed: a function has no JSON form (at callback)
return { callback = print }

-- attack: result_header_injection
-- expect: failed: control character
return Reply({ headers = { ["X-A"] = "a\r\nSet-Cookie: b=c" } })

-- attack: result_header_injection_later
-- expect: failed: control character
local reply = Reply({ headers = { ["X-A"] = "a" } })
reply.headers["X-A"] = "a\nb"
return reply

-- attack: result_header_name
-- expect: failed: invalid name
return Reply({ headers = { ["X A"] = "a" } })

-- attack: result_hostile_eq
-- expect: succeeded: [{}]
local metatable = { __eq = function() while true do end end }
return { setmetatable({}, metatable) and object({}) }

-- attack: result_hostile_index
-- expect: succeeded: []
return setmetatable({}, { __index = function() while true do end end })

-- attack: result_hostile_len
-- expect: succeeded: []
return setmetatable({}, { __len = function() while true do end end })

-- attack: result_hostile_pairs
-- expect: succeeded: {"a":1}
return setmetatable({ a = 1 }, { __pairs = function() while true do end end })

-- attack: result_informational_status
-- expect: failed: status must be
return Reply({ status = 101 })

-- attack: result_many_headers
-- expect: failed: more than 100 headers
local headers = {}
for i = 1, 1000 do headers["X-" .. i] = "a" end
return Reply({ headers = headers })

-- attack: result_many_values
-- expect: succeeded: 1
return "1", table.unpack({}, 1, 1e5)

-- attack: result_nan
-- expect: failed: NaN
return { 0 / 0 }

-- attack: result_reply_forged_by_verdict
-- expect: succeeded: {"after":0}
local verdict = Retry({ after = 0 })
pcall(setmetatable, verdict, nil)
return Reply({ status = 299, body = verdict })

-- attack: result_shared_tables
-- expect: reply-too-large
local t = { "x" }
for _ = 1, 40 do t = { t, t } end
return t

-- attack: result_shared_tables_to_json
-- expect: failed: over 16 MiB
local t = { ("x"):rep(100) }
for _ = 1, 40 do t = { t, t } end
return ToJson(t)

-- attack: result_status_changed_later
-- expect: failed: status must be
local reply = Reply({})
reply.status = 1e300
return reply

-- attack: result_too_deep
-- expect: failed: nested deeper than 128 levels
local t = {}
for _ = 1, 1000 do t = { t } end
return t

-- attack: result_too_long
-- expect: reply-too-large
return ("x"):rep(2 * 1024 * 1024)

-- attack: result_too_long_json
-- expect: reply-too-large
return { ("x"):rep(1024 * 1024) }

-- attack: result_verdict_changed_later
-- expect: failed: Retry: after must be a number
local verdict = Retry({})
verdict.after = 0 / 0
return verdict

-- attack: result_verdict_hostile_fields
-- expect: succeeded: refused
local hostile = setmetatable({}, {
  __index = function() while true do end end,
  __pairs = function() while true do end end,
  __lt = function() return true end,
  __le = function() return true end,
})
local values = { hostile, 0 / 0, math.huge, -math.huge, math.mininteger, -0.1, 86400.1, "1", {}, true, print }
for _, value in ipairs(values) do
  for _, field in ipairs({ "after", "reason", "status" }) do
    local is_text = field == "reason" and type(value) == "string"
    if pcall(Retry, { [field] = value }) and not is_text then
      return field .. " taken: " .. tostring(value)
    end
    if pcall(Fail, { [field] = value }) and not is_text then
      return field .. " taken: " .. tostring(value)
    end
  end
end
Retry(hostile)
return not pcall(Retry) and not pcall(Fail, "reason") and "refused"

-- attack: result_verdict_reason_changed_later
-- expect: failed: Fail: reason must be a string
local verdict = Fail({})
verdict.reason = setmetatable({}, { __tostring = function() while true do end end })
return verdict

-- attack: error_line_past_32_bits
-- expect: failed: attack:9999999999: boom
error("attack:9999999999: boom", 0)

-- attack: error_line_past_64_bits
-- expect: failed: attack:99999999999999999999999: boom
error("attack:99999999999999999999999: boom", 0)

-- attack: error_message_is_long
-- expect: failed: xxxx
error(("x"):rep(1e6))

-- attack: error_object_with_fields
-- expect: failed: {"code":7}
error({ code = 7 })

-- attack: error_traceback_is_long
-- expect: failed: deep
local name = ("x"):rep(20000)
local object = {}
object[name] = function() error("deep") end
local calls = {}
for i = 1, 20 do
  local inner = object[name]
  object[name] = function() local _ = object; inner() return 1 end
end
object[name]()

-- attack: error_with_binary_message
-- expect: failed: boom
error("boom\xff\0")

-- attack: error_without_message
-- expect: failed: nil
error()
