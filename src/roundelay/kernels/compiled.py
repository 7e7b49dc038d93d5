"""The primitives of `roundelay.kernels`, as the compiled engine runs them.

This file is part of the hash that names a compiled module: editing it makes every module new.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Strict floating point: the same bits on every x86-64. With fused multiply-add they would differ.
STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": False}
# The loop is called from Python and kept on disk; what it calls becomes part of it and needs no way in.
OUTER: dict[str, Any] = {**STRICT, "cache": True, "nogil": True}
INNER: dict[str, Any] = {**STRICT, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Vectors up to this length are scratch on the stack, where LLVM can keep them in registers.
STACK_LIMIT = 256

each = range


def _stack_array(context, builder, array_type, shape):
    """An array over stack memory of the function under compilation."""
    count = math.prod(shape)
    double = ir.DoubleType()
    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(double, count))
    array = context.make_array(array_type)(context, builder)
    itemsize = context.get_constant(types.intp, 8)
    strides = [8 * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    context.populate_array(
        array,
        data=builder.bitcast(memory, double.as_pointer()),
        shape=cgutils.pack_array(builder, [context.get_constant(types.intp, n) for n in shape]),
        strides=cgutils.pack_array(builder, [context.get_constant(types.intp, s) for s in strides]),
        itemsize=itemsize,
        meminfo=None,
    )
    return array._getvalue()


@intrinsic
def stack_vector(typing_context, dim):
    """A vector on the stack; its length must be a literal."""
    if not isinstance(dim, types.IntegerLiteral):
        return None
    array_type = types.Array(types.float64, 1, "C")
    shape = (dim.literal_value,)

    def generate(context, builder, signature, arguments):
        return _stack_array(context, builder, array_type, shape)

    return array_type(dim), generate


@intrinsic
def stack_matrix(typing_context, dim):
    """A square matrix on the stack; its size must be a literal."""
    if not isinstance(dim, types.IntegerLiteral):
        return None
    array_type = types.Array(types.float64, 2, "C")
    shape = (dim.literal_value, dim.literal_value)

    def generate(context, builder, signature, arguments):
        return _stack_array(context, builder, array_type, shape)

    return array_type(dim), generate


@njit(**INNER)
def heap_vector(dim):
    """A vector on the heap, where the stack would be too small."""
    return np.empty(dim)


@njit(**INNER)
def heap_matrix(dim):
    """A square matrix on the heap."""
    return np.empty((dim, dim))


def scratch(dim):
    """The names of the functions that make scratch vectors and matrices for this dimension."""
    vector = "stack_vector" if dim <= STACK_LIMIT else "heap_vector"
    return vector, "stack_matrix" if dim * dim <= STACK_LIMIT else "heap_matrix"


@intrinsic
def prefetch(typing_context, array, row):
    """Ask the processor for a row of an array; nothing else happens, whatever the row."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, view.strides)[0]
        word, flag, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
        address = builder.add(builder.ptrtoint(view.data, word), builder.mul(arguments[1], stride))
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # For reading, to be kept, data.
        builder.call(function, [builder.inttoptr(address, byte), *(ir.Constant(flag, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def _high_product(typing_context, a, b):
    signature = types.uint64(types.uint64, types.uint64)

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return signature, generate


@njit(**INNER)
def full_product(a, b):
    """The high and the low 64 bits of a·b, by the processor's own wide multiplication."""
    return _high_product(a, b), a * b
