"""The decrement that the `limits` library's Redis storage lacks."""

from math import ceil
from typing import Any

from limits.errors import StorageError

# A window that has ended has no key, so nothing is taken back from it.
_DECREMENT = """
local hits = tonumber(redis.call("get", KEYS[1]) or "0")
if hits > 0 and redis.call("pttl", KEYS[1]) <= tonumber(ARGV[1]) then
    return redis.call("decr", KEYS[1])
end
return 0
"""


def decrement_in_redis(storage: Any, key: str, most_left: float) -> None:
    """Takes one hit back, unless more than ``most_left`` seconds are left of the window.

    Raises ``StorageError`` if Redis does not answer.
    """
    milliseconds = ceil(most_left * 1000)
    try:
        storage.get_connection().eval(_DECREMENT, 1, storage.prefixed_key(key), milliseconds)
    except storage.base_exceptions as error:
        raise StorageError(error) from error
