"""How a page may look; for tests of pages whose layout or colours matter."""

import pytest

LIGHT_AND_WIDE = ("light", 1440)
DARK_AND_NARROW = ("dark", 390)

in_both_looks = pytest.mark.parametrize(
    "admin_browser",
    [
        pytest.param(LIGHT_AND_WIDE, id="light-wide"),
        pytest.param(DARK_AND_NARROW, id="dark-narrow"),
    ],
    indirect=True,
)
