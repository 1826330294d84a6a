"""PlanBuilder: what lowerings work on. It knows where every value lives, gives new values a place, and collects ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.graph import Array
from edgekit.converters.lowering.placement import Placement, prefers_channels_last
from edgekit.converters.lowering.ranks import legal_operands
from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.converters.lowering.tables import TableRegion, TableRegions, identity_table
from edgekit.converters.lowering.views import (
    Dims,
    Quant,
    Storage,
    StorageKind,
    View,
    Want,
    channels_last_order,
    dense_view,
)
from edgekit.package.program_schema import Packing, numpy_dtype, program_dtype, program_schema


@dataclass
class LoweredOp:
    """One native operation on views.

    Attributes:
        opcode: Name in the schema.
        inputs, outputs: Operands; None: absent.
        attributes: See edgekit.package.program.Op.
        nodes: Source nodes it stands for.
        macs: Multiply-accumulates.
        note: Why it is not what was planned, for the audit.
    """

    opcode: str
    inputs: list[View | None]
    outputs: list[View | None]
    attributes: dict[str, int | float]
    nodes: tuple[ir.Node, ...]
    macs: int = 0
    note: str = ""


@dataclass
class PlanBuilder:
    """State of the lowering of one graph for one ISA.

    A float value may be held as floats, as quantized integers whose dequantization it is, or both; the second form
    becomes the first only when somebody asks for it.

    Attributes:
        source: The graph.
        isa: Target.
        tolerant: Whether inputs and outputs that programs can't have are let pass: nothing touches them.
        ops: Operations so far.
        done: Nodes already lowered, alone or into another.
        notes: Node to the reason why it is not INT8, for the audit.
    """

    source: ir.Graph
    isa: str
    tolerant: bool = False
    ops: list[LoweredOp] = field(default_factory=list)
    done: set[ir.Node] = field(default_factory=set)
    notes: dict[ir.Node, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._raw: dict[ir.Value, View] = {}
        self._quantized: dict[ir.Value, View] = {}
        self._fusing: tuple[ir.Node, ...] = ()
        self.inputs = [self._edge_storage("input", slot, value) for slot, value in enumerate(self.source.inputs)]
        self.outputs = [self._edge_storage("output", slot, value) for slot, value in enumerate(self.source.outputs)]
        for value, view in zip(self.source.inputs, self.inputs, strict=True):
            self._raw[value] = view
        self._placement = Placement(self.source, self.outputs, self.packing.act)
        self.regions = TableRegions(self.source)

    @property
    def packing(self) -> Packing:
        """How the target wants weights and activations."""
        return program_schema().packings[self.isa]

    def _edge_storage(self, kind: StorageKind, slot: int, value: ir.Value) -> View:
        try:
            dims, dtype = graph.dims_of(value), graph.program_dtype_of(value)
        except NotLowerableError:
            if not self.tolerant:
                raise
            dims, dtype = (), "bool"
        elements = int(np.prod(dims, dtype=np.int64))
        return dense_view(Storage(kind, dtype, elements, value.name or "", slot=slot), dims)

    # -- values -------------------------------------------------------------------------------------------------------

    def bind(self, value: ir.Value, view: View) -> None:
        """Says where a value is; quantized views stand for the dequantized floats."""
        if view.quant is not None:
            self._quantized[value] = view
        else:
            self._raw[value] = view

    def is_bound(self, value: ir.Value) -> bool:
        """Whether a value can be read: constants always can."""
        return value in self._raw or value in self._quantized or graph.constant_of(value) is not None

    def quantized(self, value: ir.Value | None) -> View | None:
        """The quantized form of a value; None where it has none.

        A DequantizeLinear may stand later in the graph than what could use its result: it is looked through.
        """
        if value is None:
            return None
        view, producer = self._quantized.get(value), value.producer()
        if view is None and producer is not None and graph.is_op(producer, "DequantizeLinear"):
            integers = self._quantized.get(graph.required(producer, 0))
            if integers is not None and graph.quant_parameters(producer, self.packing.act) == integers.quant:
                return integers
        return view

    def raw(self, value: ir.Value) -> View:
        """The value in its own dtype: constants are stored, quantized floats are dequantized, each once."""
        view = self._raw.get(value)
        if view is not None:
            return view
        quantized = self._quantized.get(value)
        if quantized is not None:
            view = self._dequantize(value, quantized)
        else:
            array = graph.constant_of(value)
            if array is None:
                raise NotLowerableError(f"{value.name} is not available")
            view = self.constant(array, value.name or "")
        self._raw[value] = view
        return view

    def raw_or_converted(self, value: ir.Value, target: View) -> View:
        """The value in its own dtype for an output of the graph: what is only quantized is dequantized right there."""
        view = self._quantized.get(value)
        if value in self._raw or view is None or target.dtype != "f32":
            return self.raw(value)
        producer = value.producer()
        self.emit("convert", [view], [target], nodes=() if producer is None else (producer,))
        return target

    def stand_in(self, value: ir.Value) -> View:
        """A place for a value that something else will give."""
        return self.temporary(Want(graph.dims_of(value), graph.program_dtype_of(value)), value.name or "")

    def either(self, value: ir.Value) -> View:
        """The quantized form where there is one, otherwise the value itself."""
        return self._quantized.get(value) or self.raw(value)

    def has_raw(self, value: ir.Value) -> bool:
        """Whether the value is held in its own dtype already, besides any quantized form."""
        return value in self._raw

    def prefers_channels_last(self, value: ir.Value) -> bool:
        """See placement.prefers_channels_last; False for ranks below 3."""
        return len(graph.dims_of(value)) > 2 and prefers_channels_last(value)

    def constant(self, array: Array, name: str = "", quant: Quant | None = None) -> View:
        """Stores an array among the constants.

        Raises:
            NotLowerableError: Programs lack its dtype, or it is empty.
        """
        try:
            dtype = program_dtype(array.dtype)
        except KeyError:
            raise NotLowerableError(f"constant {name} of dtype {array.dtype}") from None
        if array.size == 0:
            raise NotLowerableError(f"constant {name} is empty")
        data = np.ascontiguousarray(array)
        return dense_view(Storage("constants", dtype, data.size, name, data), array.shape, quant=quant)

    def _dequantize(self, value: ir.Value, view: View) -> View:
        """Emits what turns quantized storage into the value as the model declares it."""
        producer = value.producer()
        nodes = (producer,) if producer is not None else ()
        dtype = graph.program_dtype_of(value)
        if dtype == "f32":
            result = self.new(value, Want(view.dims, "f32", view.order()))
            self.emit("convert", [view], [result], nodes=nodes)
            return result
        # An integer output of QuantizeLinear that something other than DequantizeLinear reads.
        plain = replace(view, quant=None)
        if view.dtype == dtype:
            return plain
        return self.shifted_bytes(plain, dtype, nodes)

    def shifted_bytes(self, view: View, dtype: str, nodes: Sequence[ir.Node] = ()) -> View:
        """u8 <-> s8 such that the value moves by 128, as zero points do."""
        order = view.order()
        wide = self.temporary(Want(view.dims, "i32", order))
        moved = self.temporary(Want(view.dims, "i32", order))
        result = self.temporary(Want(view.dims, dtype, order))
        offset = self.constant(np.array([128], np.int32)).expanded(view.dims)
        kind = program_schema().enums["binary_kind"]["sub" if dtype == "s8" else "add"]
        self.emit("convert", [view], [wide], nodes=nodes)
        self.emit("binary", [wide, offset], [moved], {"kind": kind}, nodes=nodes)
        self.emit("convert", [moved], [result], nodes=nodes)
        return result

    # -- places -------------------------------------------------------------------------------------------------------

    def new(self, value: ir.Value, want: Want) -> View:
        """Gives a value a place: inside a concatenation or a program output that it ends in, else memory of its own."""
        placed = self._placement.find(value, want)
        if placed is not None and (want.accept is None or want.accept(placed)):
            self._placement.claim(value, want)
            return placed
        order = want.order
        if want.accept is None and len(want.dims) > 2 and prefers_channels_last(value):
            order = channels_last_order(len(want.dims))
        return self.temporary(replace(want, order=order), value.name or "")

    def new_seen_as(self, value: ir.Value, want: Want, dims: Dims) -> tuple[View, View]:
        """A place for a value, and the same place seen with other dims of as many elements."""
        view = self.new(value, replace(want, accept=lambda place: place.reshaped(dims) is not None))
        seen = view.reshaped(dims)
        assert seen is not None  # what accept let pass, or dense
        return view, seen

    def temporary(self, want: Want, name: str = "") -> View:
        """Memory that no value of the graph owns."""
        elements = int(np.prod(want.dims, dtype=np.int64))
        return dense_view(Storage("arena", want.dtype, elements, name), want.dims, want.order, want.quant)

    def concat_quant(self, node: ir.Node) -> Quant | None:
        """Quantization in which a concatenation is stored; None: in the dtype of the model."""
        return self._placement.concat_quant(node)

    def concat_slots(self, node: ir.Node, order: Dims | None) -> tuple[View, list[View]]:
        """The whole of a concatenation's result and the place of each operand, by axis of the node."""
        return self._placement.concat_slots(node, order)

    # -- ops ----------------------------------------------------------------------------------------------------------

    def fuse(self, nodes: Iterable[ir.Node]) -> None:
        """Says which nodes the following ops stand for, until the next call; marks them as lowered."""
        self._fusing = tuple(nodes)
        self.done.update(self._fusing)

    def emit(
        self,
        opcode: str,
        inputs: Sequence[View | None],
        outputs: Sequence[View | None],
        attributes: Mapping[str, int | float] | None = None,
        *,
        nodes: Sequence[ir.Node] = (),
        macs: int = 0,
    ) -> None:
        """Appends an operation.

        Args:
            opcode: Name in the schema.
            inputs: Views; None: absent.
            outputs: Likewise.
            attributes: By name.
            nodes: Source nodes it stands for; default: those of the last fuse().
            macs: Multiply-accumulates.

        Raises:
            NotLowerableError: An operand has more dims than programs allow.
        """
        owners = tuple(nodes) or self._fusing
        operands = legal_operands(opcode, [*inputs, *outputs])
        split = len(inputs)
        self.ops.append(LoweredOp(opcode, operands[:split], operands[split:], dict(attributes or {}), owners, macs))

    def requantize(self, view: View, result: View) -> None:
        """Emits what stores a view, float or quantized, in the quantization of the result."""
        if view.quant is None:
            self.emit("convert", [view], [result])
        elif view.quant == result.quant:
            self.emit("copy", [view], [result])
        else:
            assert result.quant is not None
            self.emit("lut_q8", [view, self.constant(self.table(None, view.quant, result.quant))], [result])

    def table(self, region: TableRegion | None, source: Quant, target: Quant) -> Array:
        """The 256 entries of a region; without one, of a change of quantization."""
        act = self.packing.act
        return identity_table(source, target, act) if region is None else region.table(source, target, act)

    def alias(self, node: ir.Node, view: View) -> None:
        """Says that a node's result is a view of what is there already."""
        self.fuse([node])
        self.bind(node.outputs[0], view)

    def emit_matmul(self, a: View, b: View, y: View, alpha: float = 1.0) -> None:
        """Emits matmul_f32 of operands whose batch dims are those of y."""
        if y.rank > program_schema().max_rank:
            raise NotLowerableError(f"MatMul of rank {y.rank}")
        self.emit("matmul_f32", [a, b], [y], {"alpha": alpha}, macs=y.elements * a.dims[-1])

    def copied(self, view: View, order: Dims | None = None) -> View:
        """A dense copy of a view, in the given order of axes."""
        result = self.temporary(Want(view.dims, view.dtype, order, view.quant), view.storage.name)
        self.emit("copy", [view], [result])
        return result

    def reshaped(self, view: View, dims: Dims) -> View:
        """A reshape, by a copy only where the strides force one."""
        result = view.reshaped(dims)
        if result is None:
            result = self.copied(view).reshaped(dims)
        if result is None:  # a dense view always reshapes
            raise NotLowerableError(f"reshape of {view.dims} to {dims}")
        return result

    def reshape_for(self, value: ir.Value, view: View, dims: Dims) -> View:
        """A reshape that gives a value; where a copy is needed, straight to the place of the value."""
        result = view.reshaped(dims)
        if result is not None:
            return result
        target = self.new(value, Want(dims, view.dtype, None, view.quant))
        back = target.reshaped(view.dims)
        if back is None:
            return self.reshaped(view, dims)
        self.emit("copy", [view], [back])
        return target

    def numpy_dtype(self, view: View) -> np.dtype[np.generic]:
        """The numpy dtype of a view's elements."""
        return numpy_dtype(view.dtype)
