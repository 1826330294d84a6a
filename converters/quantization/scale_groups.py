"""Which quantized tensors share a scale.

What only moves values keeps its input's scale. An input of a Concat takes the scale of the result when nothing else
reads it, for it is rounded to that grid anyway, or when the ranges are alike; otherwise it is requantized there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from edgekit.converters.quantization.curves import CurveRegion, evaluate
from edgekit.converters.quantization.observers import TensorObserver
from edgekit.converters.quantization.op_rules import fixed_range
from edgekit.converters.quantization.placement import Placement
from edgekit.converters.quantization.ranges import AffineQuant, Curve, Method, RangeChoice, choose_range
from edgekit.converters.quantization.units import Unit, UnitKind

_ALIKE = 4.0  # ratio of ranges up to which a shared scale costs little
_CURVE_POINTS = 4096


@dataclass(frozen=True)
class Choices:
    """Scales of all quantized tensors.

    Attributes:
        by_tensor: Choice by tensor name; tensors of one group hold the same.
        groups: Tensors that share a scale, in graph order.
    """

    by_tensor: Mapping[str, RangeChoice]
    groups: tuple[tuple[str, ...], ...]

    def quants(self) -> dict[str, AffineQuant]:
        """Scale and zero point by tensor name."""
        return {name: choice.quant for name, choice in self.by_tensor.items()}


class _Groups:
    """Union-find over tensor names; the first name of a group in graph order stands for it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._order = {name: position for position, name in enumerate(names)}
        self._parent = {name: name for name in names}

    def find(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, one: str, other: str) -> None:
        first, second = sorted((self.find(one), self.find(other)), key=self._order.__getitem__)
        self._parent[second] = first

    def members(self) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for name in self._order:
            groups.setdefault(self.find(name), []).append(name)
        return groups


def choose_scales(
    model: ir.Model,
    placement: Placement,
    observers: Mapping[str, TensorObserver],
    method: Method,
    methods: Mapping[str, Method] | None = None,
) -> Choices:
    """Chooses scale and zero point of every quantized tensor.

    Args:
        model: The float model that the placement belongs to.
        placement: What is quantized.
        observers: Statistics by tensor name.
        method: How ranges are chosen.
        methods: Tensor name to another method for its group.

    Returns:
        The choices.
    """
    groups = _Groups([value.name or "" for value in placement.tensors])
    for unit in placement.integer:
        if unit.kind is UnitKind.INHERIT:
            for output in unit.outputs:
                if output in set(placement.tensors):
                    groups.join(_name(unit.inputs[0]), _name(output))
    _unify_concats(placement, groups, observers)
    values = {_name(value): value for value in placement.tensors}
    readers = _readers(placement)
    curve_of = _CurveCache(model)
    choices: dict[str, RangeChoice] = {}
    for members in groups.members().values():
        widest = max(members, key=lambda name: _span(observers[name]))
        curves = _curves([values[name] for name in members], readers, set(members), curve_of, observers[widest])
        fixed = fixed_range(values[widest].producer())
        own = next((methods[name] for name in members if name in methods), method) if methods else method
        choice = choose_range(observers[widest], own, curves, fixed)
        choices.update(dict.fromkeys(members, choice))
    return Choices(choices, tuple(tuple(members) for members in groups.members().values()))


def _unify_concats(placement: Placement, groups: _Groups, observers: Mapping[str, TensorObserver]) -> None:
    for unit in placement.units:  # in graph order, so that the result is the same each time
        if unit.kind is not UnitKind.CONCAT or unit not in placement.integer:
            continue
        output = _name(unit.outputs[0])
        for value in unit.inputs:
            alike = _span(observers[output]) <= _ALIKE * _span(observers[_name(value)])
            if alike or len(value.uses()) == 1:
                groups.join(_name(value), output)


def _span(observer: TensorObserver) -> float:
    return max(observer.maximum, 0.0) - min(observer.minimum, 0.0) if observer.samples else 0.0


def _readers(placement: Placement) -> dict[str, list[Unit]]:
    readers: dict[str, list[Unit]] = {}
    for unit in placement.units:
        for value in unit.inputs:
            readers.setdefault(_name(value), []).append(unit)
    return readers


class _CurveCache:
    """Functions as interpolated tables, made once each."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._made: dict[CurveRegion, Curve] = {}

    def __call__(self, region: CurveRegion, low: float, high: float) -> Curve:
        if region not in self._made:
            grid = np.linspace(low, high, _CURVE_POINTS)
            heights = evaluate(region, self._model, grid.astype(np.float32)).astype(np.float64)
            finite = np.isfinite(heights)
            self._made[region] = lambda x: np.interp(x, grid[finite], heights[finite])
        return self._made[region]


def _curves(
    members: Sequence[ir.Value],
    readers: Mapping[str, list[Unit]],
    inside: set[str],
    curve_of: Callable[[CurveRegion, float, float], Curve],
    observer: TensorObserver,
) -> list[Curve]:
    """Functions through which a group is seen; none when somebody reads it as it is."""
    curves: dict[Unit, Curve] = {}
    margin = 0.01 * _span(observer)
    low, high = min(0.0, observer.minimum) - margin, max(0.0, observer.maximum) + margin
    for value in members:
        if value.is_graph_output():
            return []
        for unit in readers.get(_name(value), ()):
            if unit.kind in (UnitKind.INHERIT, UnitKind.CONCAT) and all(
                _name(v) in inside for v in unit.outputs if v.uses()
            ):
                continue
            if unit.region is None or not np.isfinite(low + high):
                return []
            curves[unit] = curve_of(unit.region, low, high)
    return list(curves.values())


def _name(value: ir.Value) -> str:
    return value.name or ""
