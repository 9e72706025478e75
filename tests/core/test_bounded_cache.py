import time

import pytest

from core.caches import BoundedCache

LONG = 3600


@pytest.fixture
def cache() -> BoundedCache[str, int]:
    return BoundedCache(2)


def put(cache: BoundedCache[str, int], **values: int) -> None:
    for key, value in values.items():
        cache.put(key, value, until=time.monotonic() + LONG)


def test_a_value_is_found_until_it_is_forgotten(cache: BoundedCache[str, int]) -> None:
    put(cache, a=1)
    before = cache.get("a")
    cache.forget("a")
    cache.forget("a")

    assert (before, cache.get("a")) == (1, None)


def test_a_value_is_not_found_from_its_end_on(
    cache: BoundedCache[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    cache.put("a", 1, until=now + LONG)
    monkeypatch.setattr(time, "monotonic", lambda: now + LONG - 0.1)
    before = cache.get("a")
    monkeypatch.setattr(time, "monotonic", lambda: now + LONG)

    assert (before, cache.get("a")) == (1, None)


def test_a_full_cache_is_cleared_for_a_new_key(cache: BoundedCache[str, int]) -> None:
    put(cache, a=1, b=2, c=3)

    assert (len(cache), cache.get("a"), cache.get("c")) == (1, None, 3)


def test_a_full_cache_keeps_its_keys_when_one_changes(cache: BoundedCache[str, int]) -> None:
    put(cache, a=1, b=2)
    put(cache, b=3)

    assert (cache.get("a"), cache.get("b")) == (1, 3)
