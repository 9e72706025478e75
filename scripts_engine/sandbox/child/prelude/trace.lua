-- Reports the current line to the worker, which names it when time runs out.
local private = ...
local call_python, debug = private.call_python, private.debug
local coroutine = private.environment.coroutine
local create, wrap, type = coroutine.create, coroutine.wrap, type

-- Reports every line at first, to find a single call that never returns; after that only every so
-- many instructions, to slow a long computation down less.
local LINES_REPORTED_EACH = 2000
local INSTRUCTIONS_PER_REPORT = 1000

function private.start_trace(chunk_source)
  local getinfo, sethook = debug.getinfo, debug.sethook
  local lines = 0

  local function on_count()
    local info = getinfo(2, "Sl")
    if info and info.source == chunk_source then
      call_python("line", info.currentline)
    end
  end

  local function on_line(_, line)
    if getinfo(2, "S").source == chunk_source then
      call_python("line", line)
    end
    lines = lines + 1
    if lines >= LINES_REPORTED_EACH then
      sethook(on_count, "", INSTRUCTIONS_PER_REPORT)
    end
  end

  -- A hook belongs to one coroutine, so each new one sets it again.
  local function traced(body)
    if type(body) ~= "function" then
      return body
    end
    return function(...)
      if lines < LINES_REPORTED_EACH then
        sethook(on_line, "l")
      else
        sethook(on_count, "", INSTRUCTIONS_PER_REPORT)
      end
      return body(...)
    end
  end

  function coroutine.create(body)
    return create(traced(body))
  end

  function coroutine.wrap(body)
    return wrap(traced(body))
  end

  sethook(on_line, "l")
end
