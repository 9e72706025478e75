"""The log area as the worker reads it, whatever a child has written there."""

from __future__ import annotations

import os
import struct

import pytest

from scripts_engine.sandbox.protocol import AREA_BYTES, LogArea, create_area_file


@pytest.mark.parametrize(
    "written",
    [
        b"\xff" * AREA_BYTES,
        struct.pack("<II", 2**32 - 1, 0),
        struct.pack("<IIdBI", 13, 0, 0.0, 1, 2**32 - 1),
        struct.pack("<IIdBI", 13, 0, 0.0, 9, 0),
        struct.pack("<II", AREA_BYTES, 0) + struct.pack("<dBI", 0.0, 1, 0) * 5000,
    ],
)
def test_a_corrupt_log_area_is_read_within_bounds(written):
    log_file = create_area_file()
    os.pwrite(log_file, written, 0)
    area = LogArea(log_file)
    assert len(area.lines()) <= 1100
    area.close()


def test_half_a_record_is_not_shown():
    log_file = create_area_file()
    os.pwrite(log_file, struct.pack("<IIdBI", 16, 0, 1.0, 1, 100) + b"half", 0)
    area = LogArea(log_file)
    assert area.lines() == ()
    area.close()


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1.0, 1e12, 1e300])
def test_a_log_line_with_an_invalid_time_is_not_shown(at):
    log_file = create_area_file()
    os.pwrite(log_file, struct.pack("<IIdBI", 13, 0, at, 1, 0), 0)
    area = LogArea(log_file)
    assert area.lines() == ()
    area.close()
