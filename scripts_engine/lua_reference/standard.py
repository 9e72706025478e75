"""The names of Lua 5.4 that are left to scripts."""

from scripts_engine.lua_reference.entry import Entry

_NAMES = """
assert error getmetatable ipairs next pairs pcall rawequal rawget rawlen rawset select
setmetatable tonumber tostring type xpcall _G _VERSION
coroutine.close coroutine.create coroutine.isyieldable coroutine.resume coroutine.running
coroutine.status coroutine.wrap coroutine.yield
math.abs math.acos math.asin math.atan math.ceil math.cos math.deg math.exp math.floor
math.fmod math.huge math.log math.max math.maxinteger math.min math.mininteger math.modf math.pi
math.rad math.random math.randomseed math.sin math.sqrt math.tan math.tointeger math.type math.ult
os.clock os.date os.difftime os.time
string.byte string.char string.find string.format string.gmatch string.gsub string.len
string.lower string.match string.pack string.packsize string.rep string.reverse string.sub
string.unpack string.upper
table.concat table.insert table.move table.pack table.remove table.sort table.unpack
utf8.char utf8.charpattern utf8.codepoint utf8.codes utf8.len utf8.offset
"""

_LIMITS = {"setmetatable": "`setmetatable` refuses `__gc`."}

STANDARD = tuple(
    Entry(name, name, "Standard Lua 5.4.", limits=_LIMITS.get(name, "")) for name in _NAMES.split()
)
