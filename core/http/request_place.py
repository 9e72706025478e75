"""The place in a bulkhead that a request holds while it is served."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest

from core.http.bulkhead import Place

_PLACE = "_place_in_bulkhead"


def has_place(request: HttpRequest) -> bool:
    return hasattr(request, _PLACE)


def remember_place(request: HttpRequest, place: Place) -> None:
    setattr(request, _PLACE, place)


@contextmanager
def place_left_to_others(request: HttpRequest) -> Iterator[None]:
    """Without the request's place, ``with`` this: for a wait that another limit bounds."""
    place: Place = getattr(request, _PLACE)
    with place.left_to_others():
        yield
