"""The primitives of `roundelay.kernels`, as the compiled engine runs them.

This file is part of the hash that names a compiled module: editing it makes every module new.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic


class PartOfTheLoop(JITCodeLibrary):
    """The code of a function that only the loop calls: optimised by itself, once, before what it calls is linked to it.

    With all that it calls it is optimised where the loop is, and becomes machine code there alone.
    """

    def finalize(self):
        """Optimise, and then link."""
        super()._optimize_final_module()
        super().finalize()

    def _optimize_final_module(self):
        """It has been already."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerAsPart(NativeLowering):
    """numba's lowering, into such code."""

    _name = "lower_as_part"

    def run_pass(self, state):
        """There is no machine code to call; a name of its own stands for it, by which the loop finds the function."""
        state.library = PartOfTheLoop(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state["cr"] = state["cr"]._replace(cfunc=[state.library].count)
        state.targetctx.insert_user_function(state["cr"].cfunc, state["cr"].fndesc, [state.library])
        return True


class AsPart(Compiler):
    """numba's compiler, with that lowering."""

    def define_pipelines(self):
        """All its pipelines; one step is another."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [
                (LowerAsPart if step is NativeLowering else step, text) for step, text in pipeline.passes
            ]
        for pipeline in pipelines:
            pipeline._finalized = False
            pipeline.finalize()
        return pipelines


# Strict floating point: the same bits on every x86-64. With fused multiply-add they would differ.
STRICT: dict[str, Any] = {"error_model": "numpy", "fastmath": False}
# The loop is called from Python and kept on disk; what it calls becomes part of it and needs no way in.
LOOP: dict[str, Any] = {"cache": True, "nogil": True}
CALLED: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INNER: dict[str, Any] = {**STRICT, **CALLED, "pipeline_class": AsPart}
# Whoever calls holds all arrays until the call returns, so that references to them need not be counted. Only where a function
# makes an array of its own numba must, to take it away again; with atomic operations, of which a hop would have dozens.
COUNTED = (INNER, {**STRICT, **LOOP})
UNCOUNTED = ({**INNER, "_nrt": False}, {**STRICT, **LOOP, "_nrt": False})

# Vectors up to this length are scratch on the stack, where LLVM can keep them in registers.
STACK_LIMIT = 256
# What a vector takes there whose length is known at run time alone: a little more, so that the beginnings of several do
# not fall on the same lines of the processor's cache.
ROOM = STACK_LIMIT + 8

each = range


def _stack_array(context, builder, array_type, room, shape):
    """An array over stack memory of the function under compilation, with room for so many numbers."""
    double = ir.DoubleType()
    with builder.goto_entry_block():
        memory = builder.alloca(ir.ArrayType(double, room))
    array = context.make_array(array_type)(context, builder)
    itemsize = context.get_constant(types.intp, 8)
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    context.populate_array(
        array,
        data=builder.bitcast(memory, double.as_pointer()),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=itemsize,
        meminfo=None,
    )
    return array._getvalue()


def _on_stack(axes):
    """What makes an array on the stack whose sides all have the same length, which must be a literal."""

    def typing(typing_context, dim):
        if not isinstance(dim, types.IntegerLiteral):
            return None
        array_type = types.Array(types.float64, axes, "C")
        length = dim.literal_value

        def generate(context, builder, signature, arguments):
            shape = [context.get_constant(types.intp, length)] * axes
            return _stack_array(context, builder, array_type, length**axes, shape)

        return array_type(dim), generate

    return typing


def _with_room(axes):
    """The same for a length that is known at run time alone, and for which there must be room."""

    def typing(typing_context, dim):
        array_type = types.Array(types.float64, axes, "C")

        def generate(context, builder, signature, arguments):
            return _stack_array(context, builder, array_type, ROOM, [arguments[0]] * axes)

        return array_type(types.intp), generate

    return typing


stack_vector, stack_matrix = intrinsic(_on_stack(1)), intrinsic(_on_stack(2))
roomy_vector, roomy_matrix = intrinsic(_with_room(1)), intrinsic(_with_room(2))


@njit(**INNER)
def heap_vector(dim):
    """A vector on the heap, where the stack would be too small."""
    return np.empty(dim)


@njit(**INNER)
def heap_matrix(dim):
    """A square matrix on the heap."""
    return np.empty((dim, dim))


def scratch(dim, literal):
    """The names of the functions that make scratch vectors and matrices for this dimension, which is a literal or is not."""
    kind = "stack" if literal else "roomy"
    vector = f"{kind}_vector" if dim <= STACK_LIMIT else "heap_vector"
    return vector, f"{kind}_matrix" if dim * dim <= STACK_LIMIT else "heap_matrix"


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
