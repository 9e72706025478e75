"""Numbers of bytes for people."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def size_text(count: int) -> str:
    """Formats a number of bytes in the largest fitting unit: “412 MiB”, “1.5 GiB”."""
    size = float(max(count, 0))
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    digits = 1 if unit and size < 10 else 0
    return f"{size:.{digits}f}".removesuffix(".0") + f"\N{NO-BREAK SPACE}{_UNITS[unit]}"
