"""What the `limits` library's storage in Redis lacks."""

from typing import Any

from limits.errors import StorageError

# Of a window that has ended meanwhile there is nothing to take back.
_DECREMENT = """
if tonumber(redis.call("get", KEYS[1]) or "0") > 0 then
    return redis.call("decr", KEYS[1])
end
return 0
"""


def decrement_in_redis(storage: Any, key: str) -> None:
    """Takes one hit back. Raises ``StorageError`` while Redis does not answer."""
    try:
        storage.get_connection().eval(_DECREMENT, 1, storage.prefixed_key(key))
    except storage.base_exceptions as error:
        raise StorageError(error) from error
