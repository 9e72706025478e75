-- time.now, time.format, time.parse: always UTC.
local private = ...
local call_python, expect, functions = private.call_python, private.expect, private.functions
local date, error, match, pcall, tonumber = private.date, error, string.match, pcall, tonumber
local floor, huge = math.floor, math.huge

local DAY_SECONDS = 86400
local ISO_8601 = "%Y-%m-%dT%H:%M:%SZ"
local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function is_leap(year)
  return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

-- Returns the days from 1970-01-01 to a Gregorian date.
local function days_of(year, month, day)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  local leap_days = year // 4 - year // 100 + year // 400
  return 365 * year + leap_days + (153 * (month - 3) + 2) // 5 + day - 719469
end

local function days_in_month(year, month)
  return month == 2 and is_leap(year) and 29 or MONTH_DAYS[month]
end

private.days_of, private.days_in_month = days_of, days_in_month

local function parse(text)
  local year, month, day, rest = match(text, "^(%d%d%d%d)%-(%d%d)%-(%d%d)(.*)$")
  if not year then
    return nil
  end
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  if not MONTH_DAYS[month] or day < 1 or day > days_in_month(year, month) then
    return nil
  end
  local seconds = days_of(year, month, day) * DAY_SECONDS
  if rest == "" then
    return seconds + 0.0
  end
  local hour, minute, second, fraction, zone =
    match(rest, "^[Tt ](%d%d):(%d%d):(%d%d)(%.?%d*)(.*)$")
  if not hour then
    hour, minute, zone = match(rest, "^[Tt ](%d%d):(%d%d)(.*)$")
    second, fraction = "0", ""
  end
  if not hour or fraction == "." or not match(fraction, "^%.?%d*$") then
    return nil
  end
  if fraction ~= "" and not match(fraction, "^%.") then
    return nil
  end
  hour, minute, second = tonumber(hour), tonumber(minute), tonumber(second)
  if hour > 23 or minute > 59 or second > 60 then
    return nil
  end
  seconds = seconds + hour * 3600 + minute * 60 + second
  if fraction ~= "" then
    seconds = seconds + tonumber("0" .. fraction)
  end
  if zone ~= "" and zone ~= "Z" and zone ~= "z" then
    local sign, zone_hour, zone_minute = match(zone, "^([+-])(%d%d):?(%d%d)$")
    if not sign or tonumber(zone_hour) > 23 or tonumber(zone_minute) > 59 then
      return nil
    end
    local offset = tonumber(zone_hour) * 3600 + tonumber(zone_minute) * 60
    seconds = sign == "+" and seconds - offset or seconds + offset
  end
  return seconds + 0.0
end

functions["time.now"] = function()
  return (call_python("now"))
end

functions["time.format"] = function(seconds, pattern)
  expect("number", seconds, "time.format")
  if pattern ~= nil then
    expect("string", pattern, "time.format: pattern")
  end
  if seconds ~= seconds or seconds == huge or seconds == -huge then
    error("time.format: a finite number expected", 2)
  end
  local ok, text = pcall(date, "!" .. (pattern or ISO_8601), floor(seconds))
  if not ok then
    error("time.format: the time or the pattern is not valid", 2)
  end
  return text
end

functions["time.parse"] = function(text)
  expect("string", text, "time.parse")
  return parse(text) or error("time.parse: not an ISO 8601 time", 2)
end
