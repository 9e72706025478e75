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
