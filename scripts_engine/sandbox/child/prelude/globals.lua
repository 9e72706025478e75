-- Loaded last: removes what scripts must not have. The audit fails on anything left over.
local private = ...
local load_chunk, loaded = private.load_chunk, package.loaded

collectgarbage, dofile, load, loadfile, require, warn = nil, nil, nil, nil, nil, nil
debug, io, package, python = nil, nil, nil, nil

-- Lua searches this table for the names of functions in its messages.
loaded.debug, loaded.io, loaded.package, loaded.python = nil, nil, nil, nil
loaded.os = os

-- The one function that Python calls.
function private.call(name, ...)
  local target = private[name] or load_chunk(name)
  return target(...)
end
