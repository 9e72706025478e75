-- params.json and params.form: the body of the call, decoded.
local private = ...
local functions, from_json, param = private.functions, private.from_json, private.param
local error, lower, match = error, string.lower, string.match

private.load_chunk("url")
local is_multi, parse_query = private.is_multi, private.parse_query

local FORM = "application/x-www-form-urlencoded"

functions["params.json"] = function()
  local body = param("body") or ""
  if body == "" then
    error("params.json: the body is empty", 2)
  end
  -- Not a tail call, since the level counts this frame.
  local value = from_json(body, "params.json", 2)
  return value
end

functions["params.form"] = function(options)
  local all_values = is_multi(options, "params.form")
  local given = param("content_type") or ""
  -- A call without a content type is taken at the script's word.
  if given ~= "" and lower(match(given, "^[^;%s]*")) ~= FORM then
    error("params.form: the content type is " .. given .. "; " .. FORM .. " expected", 2)
  end
  return parse_query(param("body") or "", all_values)
end
