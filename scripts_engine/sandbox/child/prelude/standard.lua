-- What is left of Lua's own os and math: the time, and random numbers seeded anew for each run.
local private, _, seed = ...
local call_python = private.call_python
local randomseed, select, unpack = math.randomseed, select, string.unpack

private.date = os.date
os = { clock = os.clock, date = os.date, difftime = os.difftime, time = os.time }

-- Without arguments Lua's own answers with its seed, which holds an address.
function math.randomseed(...)
  if select("#", ...) == 0 then
    randomseed(unpack("i8i8", (call_python("random", 16))))
  else
    randomseed(...)
  end
end

randomseed(unpack("i8i8", seed))
