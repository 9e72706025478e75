-- wrk's script: sends the requests in the file BENCH_REQUESTS, in turn, and prints one line of JSON.
-- The requests stand there as on the wire, with a record separator (byte 30) after each.

local file = assert(io.open(os.getenv("BENCH_REQUESTS"), "rb"))
local requests = {}
for request in file:read("*a"):gmatch("([^\30]+)\30") do
  requests[#requests + 1] = request
end
file:close()

if #requests == 1 then
  -- wrk formats a request once, and sends it without calling Lua again.
  wrk.format = function() return requests[1] end
else
  local number = 0
  function request()
    number = number % #requests + 1
    return requests[number]
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"rps": %.2f, "p50_ms": %.3f, "p99_ms": %.3f, "requests": %d, "not_2xx": %d, "socket_errors": %d}\n',
    summary.requests / (summary.duration / 1e6),
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3,
    summary.requests,
    errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
