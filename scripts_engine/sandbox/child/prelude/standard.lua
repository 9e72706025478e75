-- os reduced to the time functions, and math.randomseed without addresses.
local shared = ...
local randomseed, select, unpack = math.randomseed, select, string.unpack

shared.date = os.date
os = { clock = os.clock, date = os.date, difftime = os.difftime, time = os.time }

-- Without arguments, Lua's own function returns its seed, which contains an address.
shared.randomseed = randomseed

function math.randomseed(...)
  if select("#", ...) == 0 then
    randomseed(unpack("i8i8", (shared.run.call_python("random", 16))))
  else
    randomseed(...)
  end
end
