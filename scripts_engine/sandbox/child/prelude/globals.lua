-- Comes last: takes away what scripts must not have. The audit finds whatever is left over.
local private = ...
local loaded = package.loaded

collectgarbage, dofile, load, loadfile, require, warn = nil, nil, nil, nil, nil, nil
debug, io, package, python = nil, nil, nil, nil

-- Lua looks here for the names of functions in its messages.
loaded.debug, loaded.io, loaded.package, loaded.python = nil, nil, nil, nil
loaded.os = os

-- What Python calls.
function private.call(name, ...)
  return private[name](...)
end
