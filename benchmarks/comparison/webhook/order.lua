#!/usr/bin/env lua5.4
-- webhook hands the payload over as an argument, and replies with what is printed.
local cjson = require "cjson"

local order = cjson.decode(arg[1])
local total = 0
for _, item in ipairs(order.items) do
  total = total + item.qty * item.price
end
io.write(cjson.encode({id = order.id, total = total}))
