"""From lowered operations on views to the plan records of a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from edgekit.converters.lowering.builder import LoweredOp, PlanBuilder
from edgekit.converters.lowering.memory_plan import MemoryPlan, plan_memory
from edgekit.converters.lowering.views import View
from edgekit.package.program import ABSENT, ARENA, CONSTANTS, Buffer, ConstantPool, Op, Plan, Tensor
from edgekit.package.program_schema import numpy_dtype


@dataclass
class _PlanWriter:
    """Collects tensor records, equal ones once."""

    pool: ConstantPool
    memory: MemoryPlan
    input_count: int
    tensors: list[Tensor] = field(default_factory=list)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def tensor(self, view: View | None) -> int:
        """Index of a view's record."""
        if view is None:
            return ABSENT
        buffer, start = self._buffer(view)
        itemsize = numpy_dtype(view.dtype).itemsize
        quant = view.quant
        record = Tensor(
            name=view.storage.name,
            dtype=view.dtype,
            dims=view.dims,
            strides=view.strides,
            buffer=buffer,
            offset_bytes=start + view.offset * itemsize,
            scale=0.0 if quant is None else quant.scale,
            zero_point=0 if quant is None else quant.zero,
        )
        key = (record.dtype, record.dims, record.strides, buffer, record.offset_bytes, record.scale, record.zero_point)
        if key not in self._known:
            self._known[key] = len(self.tensors)
            self.tensors.append(record)
        return self._known[key]

    def _buffer(self, view: View) -> tuple[int, int]:
        storage = view.storage
        if storage.kind == "constants":
            assert storage.data is not None
            return CONSTANTS, self.pool.add(storage.data)
        if storage.kind == "input":
            return 2 + storage.slot, 0
        if storage.kind == "output":
            return 2 + self.input_count + storage.slot, 0
        return ARENA, self.memory.offsets[storage]


def emit_plan(build: PlanBuilder, pool: ConstantPool) -> tuple[Plan, MemoryPlan]:
    """Makes the plan of a lowered graph.

    Args:
        build: With every output of the graph in its place.
        pool: Constants of the program; grows. The size of the plan's constants buffer is set by close_constants().
    """
    ops = live_ops(build)
    memory = plan_memory(ops)
    writer = _PlanWriter(pool, memory, len(build.inputs))
    inputs = [writer.tensor(view) for view in build.inputs]
    outputs = [writer.tensor(view) for view in build.outputs]
    records = [_record(writer, op) for op in ops]
    buffers = [Buffer("arena", memory.arena_bytes), Buffer("constants", 0)]
    for kind, views in (("input", build.inputs), ("output", build.outputs)):
        for view in views:
            size = view.elements * numpy_dtype(view.dtype).itemsize
            buffers.append(Buffer("input" if kind == "input" else "output", size))
    return Plan(buffers, writer.tensors, records, inputs, outputs), memory


def close_constants(plans: list[Plan], pool: ConstantPool) -> bytes:
    """Gives every plan the final size of the constants section, and returns the section."""
    section = pool.section()
    for plan in plans:
        plan.buffers[CONSTANTS].size_bytes = len(section)
    return section


def live_ops(build: PlanBuilder) -> list[LoweredOp]:
    """Operations whose results somebody reads."""
    needed = {view.storage for view in build.outputs}
    kept: list[LoweredOp] = []
    for op in reversed(build.ops):
        if any(view is not None and view.storage in needed for view in op.outputs):
            kept.append(op)
            needed.update(view.storage for view in op.inputs if view is not None)
    return kept[::-1]


def _record(writer: _PlanWriter, op: LoweredOp) -> Op:
    indices = [writer.tensor(view) for view in (*op.inputs, *op.outputs)]
    split = len(op.inputs)
    return Op(op.opcode, tuple(indices[:split]), tuple(indices[split:]), op.attributes, source_name(op.nodes), op.macs)


def source_name(nodes: Iterable[ir.Node]) -> str:
    """Names of source nodes joined by "+"; quantizers count only where there is nothing else."""
    nodes = list(nodes)
    layers = [node for node in nodes if node.op_type not in ("QuantizeLinear", "DequantizeLinear")] or nodes[:1]
    return "+".join(dict.fromkeys(node.name or node.op_type for node in layers))
