"""Eight numbers at a time, for kernels whose loops the compiler makes no vectors of.

Numba's compiler makes vectors of an innermost loop alone, and asks before every such loop whether
its arrays overlap. Where the loop has 32 turns the question costs more than the answer is worth,
and sums that could stay in registers go to memory at every turn. A kernel that loads eight numbers,
adds and multiplies them as if they were one, and stores them has neither; every number is rounded
as in the plain loop, so that the bits are the same.

    total = spread8(0.0)
    for i in range(n):
        total = total + load8(table, (i, j)) * weight[i]
    store8(out, j, total)

Places are not checked: eight numbers from there on must lie in one row of a C-ordered array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

SIZE = 8
_DOUBLES = ir.VectorType(ir.DoubleType(), SIZE)
_WORDS = ir.VectorType(ir.IntType(64), SIZE)
_PLACES = ir.VectorType(ir.IntType(32), SIZE)


class _Eight(types.Type):
    """The type of eight numbers, float64."""

    def __init__(self) -> None:
        super().__init__("Eight")


EIGHT = _Eight()


@register_model(_Eight)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _DOUBLES)  # type: ignore[no-untyped-call]


# --------------------------------------------------------------------------------------------------
# From memory, and back.


@intrinsic
def load8(typing: Any, array: Any, place: Any) -> Any:
    """Return the eight numbers from a place on: an index, or a tuple of them."""
    del typing

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        return builder.load(_address(context, builder, kinds, args), align=8)

    return EIGHT(array, place), build


@intrinsic
def store8(typing: Any, array: Any, place: Any, values: Any) -> Any:
    """Write eight numbers from a place on."""
    del typing

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, signature.args, args), align=8)
        return context.get_dummy_value()

    return types.void(array, place, values), build


@intrinsic
def load8_apart(typing: Any, array: Any, place: Any, stride: Any) -> Any:
    """Return eight numbers from a place on, `stride` numbers apart."""
    del typing, stride

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = ir.Constant(_DOUBLES, ir.Undefined)
        for k, address in enumerate(_addresses(context, builder, signature.args, args, 2)):
            found = builder.insert_element(found, builder.load(address), _index(k))
        return found

    return EIGHT(array, place, types.intp), build


@intrinsic
def store8_apart(typing: Any, array: Any, place: Any, stride: Any, values: Any) -> Any:
    """Write eight numbers from a place on, `stride` numbers apart."""
    del typing, stride

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for k, address in enumerate(_addresses(context, builder, signature.args, args, 2)):
            builder.store(builder.extract_element(args[3], _index(k)), address)
        return context.get_dummy_value()

    return types.void(array, place, types.intp, values), build


@intrinsic
def spread8(typing: Any, value: Any) -> Any:
    """Return a number eight times."""
    del typing, value

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        return _spread(builder, args[0])

    return EIGHT(types.float64), build


def _addresses(context: Any, builder: Any, kinds: Any, args: Any, stride: int) -> list[Any]:
    """Return where eight numbers of an array are that do not stand side by side."""
    first = _first(context, builder, kinds, args)
    steps = (builder.mul(args[stride], ir.Constant(ir.IntType(64), k)) for k in range(SIZE))
    return [builder.gep(first, [step]) for step in steps]


def _address(context: Any, builder: Any, kinds: Any, args: Any) -> Any:
    """Return where eight numbers of an array begin."""
    return builder.bitcast(_first(context, builder, kinds, args), _DOUBLES.as_pointer())


def _first(context: Any, builder: Any, kinds: Any, args: Any) -> Any:
    """Return where a number of an array is."""
    if kinds[0].layout != "C" or kinds[0].dtype != types.float64:
        raise TypeError(f"eight numbers of an array in C order and float64, not of {kinds[0]}")
    array = context.make_array(kinds[0])(context, builder, args[0])
    is_tuple = isinstance(kinds[1], types.BaseTuple)
    place = _unpacked(builder, args[1]) if is_tuple else [args[1]]
    whole = list(kinds[1]) if is_tuple else [kinds[1]]
    pairs = zip(whole, place, strict=True)
    index = [context.cast(builder, value, kind, types.intp) for kind, value in pairs]
    shape = _unpacked(builder, array.shape)
    flat = index[0]
    for size, own in zip(shape[1:], index[1:], strict=True):
        flat = builder.add(builder.mul(flat, size), own)
    return builder.gep(array.data, [flat])


def _index(k: int) -> Any:
    return ir.Constant(ir.IntType(32), k)


def _unpacked(builder: Any, values: Any) -> list[Any]:
    return list(cgutils.unpack_tuple(builder, values))  # type: ignore[no-untyped-call]


def _spread(builder: Any, value: Any) -> Any:
    none = ir.Constant(_DOUBLES, ir.Undefined)
    first = builder.insert_element(none, value, _index(0))
    return builder.shuffle_vector(first, none, ir.Constant(_PLACES, [0] * SIZE))


# --------------------------------------------------------------------------------------------------
# Arithmetic, with each other and with one number.


def _operator(symbol: Callable[..., Any], instruction: str) -> None:
    @type_callable(symbol)
    def _typed(context: Any) -> Any:
        del context

        def kind(left: Any, right: Any) -> Any:
            both = {left, right}
            return EIGHT if EIGHT in both and both <= {EIGHT, types.float64} else None

        return kind

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context
        pair = zip(signature.args, args, strict=True)
        made = (value if kind == EIGHT else _spread(builder, value) for kind, value in pair)
        return getattr(builder, instruction)(*made)

    for left, right in ((EIGHT, EIGHT), (EIGHT, types.float64), (types.float64, EIGHT)):
        lower_builtin(symbol, left, right)(build)  # type: ignore[no-untyped-call]


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


def _choice(sign: str) -> Callable[..., Any]:
    """Return a function of two vectors that takes the left number where it compares so."""

    def choose(typing: Any, left: Any, right: Any) -> Any:
        del typing

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            return _chosen(sign)(builder, *args)

        return EIGHT(left, right), build

    return choose


larger8, smaller8 = intrinsic(_choice(">")), intrinsic(_choice("<"))


def _fold(merge: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """Return a function that makes one number of a vector: of the fours, the pairs, the two."""

    def fold(typing: Any, values: Any) -> Any:
        del typing

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            one = [builder.extract_element(args[0], _index(k)) for k in range(SIZE)]
            while len(one) > 1:
                half = len(one) // 2
                pairs = zip(one[:half], one[half:], strict=True)
                one = [merge(builder, left, right) for left, right in pairs]
            return one[0]

        return types.float64(values), build

    return fold


def _chosen(sign: str) -> Callable[[Any, Any, Any], Any]:
    def merge(builder: Any, left: Any, right: Any) -> Any:
        return builder.select(builder.fcmp_ordered(sign, left, right), left, right)

    return merge


sum8 = intrinsic(_fold(lambda builder, left, right: builder.fadd(left, right)))
largest8, smallest8 = intrinsic(_fold(_chosen(">"))), intrinsic(_fold(_chosen("<")))


LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""ln 2 in two parts, the first of 33 bits: whole multiples of it are exact."""
WHOLE = 6755399441055744.0
"""3 * 2**51: what is added to it is rounded to a whole number, in the last bits."""
EXPONENT = 4503599627371519.0
"""2**52 + 1023: the last bits of the sum with k are those of the exponent of 2**k."""
TAYLOR = (
    1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07,
    2.7557319223985893e-06, 2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889,
    0.008333333333333333, 0.041666666666666664, 0.16666666666666666, 0.5,
)  # fmt: skip
"""1 / 13!, 1 / 12!, .., 1 / 2!."""


@intrinsic
def exp8(typing: Any, values: Any) -> Any:
    """Return the exponentials of numbers in [-700, 700].

    exp x = 2**k exp r with |r| <= ln 2 / 2 and a Taylor series for exp r, off by about the last
    bit. Unlike `np.exp` it has no call and no branch.
    """
    del typing

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        add, subtract, times = builder.fadd, builder.fsub, builder.fmul

        def number(value: float) -> Any:
            return ir.Constant(_DOUBLES, [value] * SIZE)

        shifted = add(times(args[0], number(LOG2_E)), number(WHOLE))
        k = subtract(shifted, number(WHOLE))
        r = subtract(args[0], times(k, number(LN2_HIGH)))
        r = subtract(r, times(k, number(LN2_LOW)))
        tail = number(TAYLOR[0])
        for term in TAYLOR[1:]:
            tail = add(times(tail, r), number(term))
        series = add(number(1.0), add(r, times(times(r, r), tail)))
        bits = builder.bitcast(add(k, number(EXPONENT)), _WORDS)
        power = builder.shl(bits, ir.Constant(_WORDS, [52] * SIZE))
        return times(series, builder.bitcast(power, _DOUBLES))

    return EIGHT(values), build
