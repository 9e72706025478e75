-- expect: succeeded: fresh
-- Every function of the platform is called with what could stay in its upvalues.
local leaking = setmetatable({ leaked = "leaked" }, { __index = { leaked = "leaked" } })
local skipped = { [_G] = true, [null] = true, [coroutine] = true, [http] = true, [store] = true }
for name, library in next, _G do
  if type(library) == "table" and not skipped[library] then
    for member, value in next, library do
      if member ~= "rep" and type(value) == "function" then
        pcall(value, "leaked", leaking)
      end
    end
  end
end
pcall(ToJson, leaking, leaking)
pcall(inspect, leaking)
pcall(Reply, leaking)
pcall(Retry, leaking)
pcall(Fail, leaking)
-- the next run
local text = inspect({ params.query("leaked"), params.header("leaked"), params.get("leaked") })
return text:find("leaked") and text or ToJson({}) == "[]" and "fresh"
