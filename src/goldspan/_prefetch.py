"""Rows of a table that kernels need soon.

Large tables fit into no cache, and every entry's row is somewhere else: the memory is told in time,
or the loops wait for it most of the time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from goldspan._kernel import inlined

AHEAD = 32
"""Entries between a row's announcement and its use."""
LINE = 8
"""Numbers of a table that come at once."""
NEAR = 1 << 17
"""Numbers of a table that is in the caches anyway: 1 MB."""


@intrinsic
def _prefetch(_: Any, table: Any, row: Any, column: Any) -> Any:
    """Announce that a number of a contiguous float64 table will be used; changes nothing."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, given[0])
        place = [
            context.cast(builder, one, kind, types.intp)
            for one, kind in zip(given[1:], signature.args[1:], strict=True)
        ]
        address = cgutils.get_item_pointer(  # type: ignore[no-untyped-call]
            context, builder, signature.args[0], array, place
        )
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # To be written, into all caches, data.
        builder.call(call, [builder.bitcast(address, byte), number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(table, row, column), emit


@inlined
def announce(table: Any, row: Any, begin: int, stop: int) -> None:
    """Announce the rows that follow some entries by `AHEAD`, where a table is large."""
    if table.size > NEAR:
        for entry in range(begin + AHEAD, min(stop + AHEAD, len(row))):
            for j in range(0, table.shape[1], LINE):
                _prefetch(table, row[entry], j)  # type: ignore[call-arg]
