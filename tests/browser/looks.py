"""How a page may look; for tests of pages whose layout or colours matter."""

from typing import Literal, TypeAlias

import pytest

Look: TypeAlias = tuple[Literal["light", "dark"], int]
"""The colour scheme, and the width of the screen in pixels."""

LIGHT_AND_WIDE: Look = ("light", 1440)
DARK_AND_NARROW: Look = ("dark", 390)

in_both_looks = pytest.mark.parametrize(
    "admin_browser",
    [
        pytest.param(LIGHT_AND_WIDE, id="light-wide"),
        pytest.param(DARK_AND_NARROW, id="dark-narrow"),
    ],
    indirect=True,
)
