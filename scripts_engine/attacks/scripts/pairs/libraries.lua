-- expect: succeeded: fresh
for _, library in next, _G do
  if type(library) == "table" and library ~= _G and library ~= null then
    for name in next, library do
      library[name] = type(name)
    end
    library.leaked = "leaked"
  end
end
-- the next run
for name, library in next, _G do
  if type(library) == "table" and library ~= _G and library ~= null then
    for member, value in next, library do
      if member == "leaked" or value == "string" then
        return name .. "." .. member
      end
    end
  end
end
return "fresh"
