"""The Lua reference: everything that scripts can use, in the order of docs/lua.md."""

from scripts_engine.lua_reference.call_and_reply import CALL, JSON, LOG, REPLY
from scripts_engine.lua_reference.host import HTTP, QUEUE, SECRETS, STORE
from scripts_engine.lua_reference.text_and_time import CRYPTO, ENCODINGS, TEXT, TIME, URL

SECTIONS = (
    CALL,
    REPLY,
    JSON,
    LOG,
    TEXT,
    HTTP,
    STORE,
    QUEUE,
    SECRETS,
    CRYPTO,
    ENCODINGS,
    URL,
    TIME,
)

MOONHOOK = tuple(entry for section in SECTIONS for entry in section.entries)
