"""Literal names in ``require``, found in a source without running it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lupa import lua54

from scripts_engine.lua_requires import Requirement, find_requirements


def names_in(source: str) -> list[str]:
    return [requirement.name for requirement in find_requirements(source)]


@pytest.mark.parametrize(
    "source",
    [
        'require("money")',
        "require('money')",
        'require "money"',
        "require 'money'",
        "require[[money]]",
        "require[==[money]==]",
        "require[[\nmoney]]",
        'require\n(\n  "money"\n)',
        'require --[[ why ]] ("money")',
        'require("money", "ignored")',
        'require("\\109\\x6fney")',
        'require("mon\\u{65}y")',
        'require("mon\\z  \n  ey")',
        'local ok = pcall(f, require("money").double(2))',
        'return "a" .. require "money"',
        '::again:: require "money"',
        'local require = print require "money"',
        'local text = "require(\'x\')" require "money"',
        '--[[ require("x") ]] require "money"',
        '--[==[ ]] require("x") ]==] require "money"',
        'local t = [[ require("x") ]] require "money"',
        '-- require("x")\nrequire "money"',
    ],
)
def test_a_literal_name_is_found(source: str) -> None:
    assert names_in(source) == ["money"]


@pytest.mark.parametrize(
    "source",
    [
        'loader.require("money")',
        'loader:require("money")',
        'loader . require "money"',
        'function require(name) return "money" end',
        'require("mon" .. "ey")',
        "require(name)",
        'require = "money"',
        'requires("money")',
        'require { "money" }',
        '-- require("money")',
        '--[[ require("money")',
        "return 'require(\"money\")'",
        '[==[ require("money") ]]',
        'local broken = "\nrequire("money")',
    ],
)
def test_anything_else_is_no_requirement(source: str) -> None:
    assert names_in(source) == []


def test_names_come_in_order_with_their_lines() -> None:
    source = 'require "a"\r\nlocal x = [[\n\n]]\n\rrequire\n"b" require "a"\r\rrequire "c"'

    assert find_requirements(source) == [
        Requirement("a", 1),
        Requirement("b", 5),
        Requirement("a", 6),
        Requirement("c", 8),
    ]


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert names_in('require("\\xff")') == ["\ufffd"]


@given(st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_a_quoted_name_is_read_as_lua_reads_it(text: str) -> None:
    quoted = lua54.LuaRuntime(encoding="utf-8").eval('function(s) return ("%q"):format(s) end')
    storable = text.replace("\r", "\n")

    assert names_in(f"require({quoted(storable)})") == [storable]


@pytest.mark.parametrize("text", ['"\\z ', "--[[\n", '"a', "[=", "'\\", "x;", 'require("', "-"])
def test_a_hostile_source_takes_linear_time(text: str) -> None:
    source = "require" + text * (64 * 1024 // len(text))

    assert len(find_requirements(source)) <= len(source)
