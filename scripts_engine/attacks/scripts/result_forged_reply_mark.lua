-- expect: succeeded: {"status":101}
return setmetatable({ status = 101 }, getmetatable(Reply({})) or nil)
