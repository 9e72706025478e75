-- time.add and time.in_zone: the calendar of UTC, and of other time zones.
local private = ...
local call_python, expect, functions = private.call_python, private.expect, private.functions
local error, format, match, next = error, string.format, string.match, next
local rawget, tonumber, tostring = rawget, tonumber, tostring
local floor = math.floor

private.load_chunk("time")
local days_of, days_in_month = private.days_of, private.days_in_month

local DAY_SECONDS = 86400
local FIRST_SECOND = days_of(0, 1, 1) * DAY_SECONDS
local LAST_SECOND = days_of(10000, 1, 1) * DAY_SECONDS - 1

-- Returns year, month and day of a number of days since 1970-01-01.
local function date_of(days)
  -- Years begin in March here, so that a leap day is the last day of its year. An era is the 400
  -- years after which the calendar repeats.
  local since_march_of_year_0 = days + 719468
  local era = since_march_of_year_0 // 146097
  local of_era = since_march_of_year_0 % 146097
  local year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
  local of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
  local months_since_march = (5 * of_year + 2) // 153
  local day = of_year - (153 * months_since_march + 2) // 5 + 1
  local month = (months_since_march + 2) % 12 + 1
  return year_of_era + era * 400 + (month <= 2 and 1 or 0), month, day
end

-- Returns the days since 1970-01-01 and the seconds of the day.
local function split_time(seconds)
  local days = floor(seconds / DAY_SECONDS)
  return days, seconds - days * DAY_SECONDS
end

local function expect_time(seconds, what)
  expect("number", seconds, what, 2)
  if not (seconds >= FIRST_SECOND and seconds < LAST_SECOND + 1) then
    error(what .. ": a time from the years 0000 to 9999 expected", 3)
  end
end

local months_of_unit = { years = 12, months = 1 }
local seconds_of_unit = {
  weeks = 7 * DAY_SECONDS,
  days = DAY_SECONDS,
  hours = 3600,
  minutes = 60,
  seconds = 1,
}
-- Always in this order, since sums of fractions depend on it.
local units_of_seconds = { "weeks", "days", "hours", "minutes", "seconds" }
-- More than ten thousand years of seconds.
local MAX_AMOUNT = 1e12

-- Returns the months and the seconds of a table of amounts.
local function read_amounts(amounts)
  for name, amount in next, amounts do
    if not months_of_unit[name] and not seconds_of_unit[name] then
      error("time.add: unknown unit " .. tostring(name), 3)
    end
    expect("number", amount, "time.add: " .. name, 2)
    if not (amount >= -MAX_AMOUNT and amount <= MAX_AMOUNT) then
      error("time.add: " .. name .. ": the number is too large", 3)
    elseif months_of_unit[name] and floor(amount) ~= amount then
      error("time.add: " .. name .. ": a whole number expected", 3)
    end
  end
  local months, seconds = 0, 0
  for name, size in next, months_of_unit do
    months = months + floor(rawget(amounts, name) or 0) * size
  end
  for _, name in next, units_of_seconds do
    seconds = seconds + (rawget(amounts, name) or 0) * seconds_of_unit[name]
  end
  return months, seconds
end

functions["time.add"] = function(seconds, amounts)
  expect_time(seconds, "time.add")
  expect("table", amounts, "time.add: amounts")
  local months, more_seconds = read_amounts(amounts)
  local days, of_day = split_time(seconds)
  if months ~= 0 then
    local year, month, day = date_of(days)
    local month_count = year * 12 + month - 1 + months
    year, month = month_count // 12, month_count % 12 + 1
    local last_day = days_in_month(year, month)
    days = days_of(year, month, day < last_day and day or last_day)
  end
  local result = days * DAY_SECONDS + of_day + more_seconds
  if not (result >= FIRST_SECOND and result < LAST_SECOND + 1) then
    error("time.add: the result is not in the years 0000 to 9999", 2)
  end
  return result + 0.0
end

functions["time.in_zone"] = function(seconds, zone)
  expect_time(seconds, "time.in_zone")
  expect("string", zone, "time.in_zone: zone")
  local found, problem = call_python("zone", floor(seconds), zone)
  if not found then
    error("time.in_zone: " .. problem, 2)
  end
  local digits, is_dst, abbreviation = match(found, "^(%S+) (%d) (.*)$")
  local offset = tonumber(digits)
  local days, of_day = split_time(floor(seconds) + offset)
  local year, month, day = date_of(days)
  local hour, minute, second = of_day // 3600, of_day // 60 % 60, of_day % 60
  local distance = offset < 0 and -offset or offset
  return {
    year = year,
    month = month,
    day = day,
    hour = hour,
    min = minute,
    sec = second,
    -- 1970-01-01 was a Thursday; Sunday is 1.
    wday = (days + 4) % 7 + 1,
    yday = days - days_of(year, 1, 1) + 1,
    isdst = is_dst == "1",
    offset = offset,
    abbreviation = abbreviation,
    iso = format(
      "%04d-%02d-%02dT%02d:%02d:%02d%s%02d:%02d",
      year,
      month,
      day,
      hour,
      minute,
      second,
      offset < 0 and "-" or "+",
      distance // 3600,
      distance // 60 % 60
    ),
  }
end
