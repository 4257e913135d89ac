"""The signs by name. A new one is one file and one line here.

The value is "module:function" of a search, which takes a `Scene` and gives signs, and one line for
help texts.
"""

from __future__ import annotations

SIGNS: dict[str, tuple[str, str]] = {
    "constant": ("goldspan.hiring.signs.constant:constant", "nearly always the same answer"),
    "base rate": ("goldspan.hiring.signs.base_rate:base_rate", "labels do not depend on the item"),
    "copies": ("goldspan.hiring.signs.copies:copies", "another worker's wrong answers"),
    "too fast": ("goldspan.hiring.signs.fast:fast", "a third of the usual time"),
    "drift": ("goldspan.hiring.signs.drift:drift", "right more seldom, or more often, later on"),
}
