"""The allow-list: every name that a script can reach, also through a metatable.

The globals of a run are copied by it. The fork server compares it with all that a script can reach
in a new state; if they differ, no child serves.
"""

from __future__ import annotations

_FUNCTIONS = """
Fail FromJson Reply Retry ToJson array assert error getmetatable inspect ipairs next object pairs
pcall print rawequal rawget rawlen rawset select setmetatable tonumber tostring type xpcall
<string>.<metatable>.__add <string>.<metatable>.__div <string>.<metatable>.__idiv
<string>.<metatable>.__mod <string>.<metatable>.__mul <string>.<metatable>.__pow
<string>.<metatable>.__sub <string>.<metatable>.__unm null.<metatable>.__index
null.<metatable>.__newindex null.<metatable>.__tostring
base64.decode base64.encode base64.urldecode base64.urlencode
coroutine.close coroutine.create coroutine.isyieldable coroutine.resume coroutine.running
coroutine.status coroutine.wrap coroutine.yield
crypto.equals crypto.hmac_sha1 crypto.hmac_sha256 crypto.hmac_sha512 crypto.md5
crypto.random_hex crypto.sha1 crypto.sha256 crypto.sha512
hex.decode hex.encode
html.escape
http.delete http.get http.head http.patch http.post http.put http.request
log.debug log.error log.info log.warn
math.abs math.acos math.asin math.atan math.ceil math.cos math.deg math.exp math.floor
math.fmod math.log math.max math.min math.modf math.rad math.random math.randomseed math.sin
math.sqrt math.tan math.tointeger math.type math.ult
os.clock os.date os.difftime os.time
params.form params.get params.header params.json params.query
queue.push
secrets.get
store.delete store.get store.increment store.list store.set store.set_if_absent
string.byte string.char string.find string.format string.gmatch string.gsub string.len
string.lower string.match string.pack string.packsize string.rep string.reverse string.split
string.sub string.trim string.unpack string.upper
table.concat table.insert table.move table.pack table.remove table.sort table.unpack
time.add time.format time.in_zone time.now time.parse
url.build_query url.decode url.encode url.parse url.parse_query
utf8.char utf8.codepoint utf8.codes utf8.len utf8.offset
uuid.v4
"""
_TABLES = """
_G base64 coroutine crypto hex html http log math null os params queue secrets store string table
time url utf8 uuid <string>.<metatable>.__index
"""
_NUMBERS = "math.huge math.maxinteger math.mininteger math.pi"
_STRINGS = "_VERSION null.<metatable>.__name utf8.charpattern"
_BOOLEANS = "<string>.<metatable>.__metatable null.<metatable>.__metatable"

# "name type", as the prelude prints them.
ALLOWED_NAMES = frozenset(
    f"{name} {kind}"
    for names, kind in (
        (_FUNCTIONS, "function"),
        (_TABLES, "table"),
        (_NUMBERS, "number"),
        (_STRINGS, "string"),
        (_BOOLEANS, "boolean"),
    )
    for name in names.split()
)
