-- os reduced to the time functions, and math.random with a new seed for each run.
local private, _, seed = ...
local call_python = private.call_python
local randomseed, select, unpack = math.randomseed, select, string.unpack

private.date = os.date
os = { clock = os.clock, date = os.date, difftime = os.difftime, time = os.time }

-- Without arguments, Lua's own function returns its seed, which contains an address.
function math.randomseed(...)
  if select("#", ...) == 0 then
    randomseed(unpack("i8i8", (call_python("random", 16))))
  else
    randomseed(...)
  end
end

randomseed(unpack("i8i8", seed))
