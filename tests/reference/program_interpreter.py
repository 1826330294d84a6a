"""Runs a native program in numpy, op by op, as program_schema.toml says: the reference for the engine and the lowering.

Integers are exact. Floats are rounded where the schema rounds; sums of float products are taken in double, so float
results of products and reductions agree with a kernel up to its own rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from edgekit.package.program import ABSENT, Op, Plan, Program
from edgekit.package.program_schema import numpy_dtype
from reference import program_image_ops as image
from reference import program_value_ops as value

Array = np.ndarray


@dataclass(frozen=True)
class Operand:
    """An operand: a strided array that aliases its buffer, and its quantization."""

    array: Array
    scale: np.float32
    zero: int


OpFunction = Callable[[list["Operand | None"], list["Operand | None"], dict[str, float]], None]
FUNCTIONS: dict[str, OpFunction] = {**image.FUNCTIONS, **value.FUNCTIONS}


def run_program(program: Program, feeds: Mapping[str, Array], plan_index: int = 0) -> dict[str, Array]:
    """Runs one plan.

    Args:
        program: As read or as built.
        feeds: By tensor name of the plan's inputs.
        plan_index: Which shape bucket.

    Returns:
        Outputs by tensor name, dense.
    """
    plan = program.plans[plan_index]
    buffers = [np.full(buffer.size_bytes + 64, 0xA5, np.uint8) for buffer in plan.buffers]
    buffers[1] = np.frombuffer(bytes(program.constants) + bytes(64), np.uint8).copy()
    for index in plan.inputs:
        tensor = plan.tensors[index]
        fed = np.asarray(feeds[tensor.name], numpy_dtype(tensor.dtype), order="C")
        assert fed.shape == tensor.dims, (tensor.name, fed.shape, tensor.dims)
        buffers[tensor.buffer][: fed.nbytes] = fed.reshape(-1).view(np.uint8)
    operands = [_operand(plan, buffers, index) for index in range(len(plan.tensors))]
    for op in plan.ops:
        _run_op(op, operands)
    return {plan.tensors[index].name: operands[index].array.copy() for index in plan.outputs}


def _operand(plan: Plan, buffers: list[Array], index: int) -> Operand:
    tensor = plan.tensors[index]
    dtype = numpy_dtype(tensor.dtype)
    reach_low = sum(min(0, (d - 1) * s) for d, s in zip(tensor.dims, tensor.strides, strict=True)) * dtype.itemsize
    reach_high = sum(max(0, (d - 1) * s) for d, s in zip(tensor.dims, tensor.strides, strict=True)) * dtype.itemsize
    size = plan.buffers[tensor.buffer].size_bytes
    inside = tensor.offset_bytes + reach_low >= 0 and tensor.offset_bytes + reach_high + dtype.itemsize <= size
    assert inside, f"{tensor} leaves its buffer of {size} bytes"
    start = buffers[tensor.buffer][tensor.offset_bytes : tensor.offset_bytes + dtype.itemsize].view(dtype)
    strides = tuple(stride * dtype.itemsize for stride in tensor.strides)
    array = as_strided(start, tensor.dims, strides)
    return Operand(array, np.float32(tensor.scale), tensor.zero_point)


def _run_op(op: Op, operands: list[Operand]) -> None:
    inputs = [None if index == ABSENT else operands[index] for index in op.inputs]
    outputs = [None if index == ABSENT else operands[index] for index in op.outputs]
    with np.errstate(all="ignore"):
        FUNCTIONS[op.opcode](inputs, outputs, op.attributes)
