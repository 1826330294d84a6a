"""Small graphs, and the one check that all pass tests share: ONNX Runtime gives the same before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper, parser

from edgekit.converters.float_reference import FloatReference
from edgekit.converters.passes._pass import Pass, PassContext, relative_error
from edgekit.converters.passes.graph_edit import forget_names
from edgekit.converters.passes.shapes import infer_shapes

BuildGraph = Callable[..., ir.Model]
Rewrite = Callable[..., ir.Model]


@pytest.fixture
def build() -> BuildGraph:
    """build(text, opset=21, w=array): a checked model from ONNX's text form, arrays as initializers."""

    def make(text: str, opset: int = 21, **arrays: np.ndarray) -> ir.Model:
        proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')
        proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in arrays.items())
        for index, node in enumerate(proto.graph.node):
            node.name = node.name or f"{node.op_type}_{index}"
        onnx.checker.check_model(proto)
        return ir.serde.deserialize_model(proto)

    return make


@pytest.fixture
def rewrite() -> Rewrite:
    """rewrite(model, pass, ...): applies passes, checks the outputs on random feeds, returns the model."""

    def apply(model: ir.Model, *passes: Pass, spread: float = 3.0, tolerance: float = 2e-6) -> ir.Model:
        reference = FloatReference(model.clone())
        feeds = random_feeds(model, spread)
        infer_shapes(model)
        for graph_pass in passes:
            forget_names(model)
            graph_pass.apply(model, PassContext())
        onnx.checker.check_model(ir.serde.serialize_model(model), full_check=True)
        expected, got = reference.run(feeds), FloatReference(model).run(feeds)
        assert list(expected) == list(got)
        for name, array in expected.items():
            assert relative_error(array, got[name]) <= tolerance, name
        return model

    return apply


def random_feeds(model: ir.Model, spread: float = 3.0) -> dict[str, np.ndarray]:
    """Uniform numbers in -spread..spread (booleans: true) for each input; open dims become 2."""
    rng = np.random.default_rng(7)
    feeds = {}
    for value in model.graph.inputs:
        shape = [d if isinstance(d, int) else 2 for d in value.shape]
        dtype = value.dtype.numpy()
        array = rng.uniform(-spread, spread, shape)
        feeds[value.name] = np.ones(shape, bool) if dtype == np.bool_ else array.astype(dtype)
    return feeds


@pytest.fixture
def ops() -> Callable[[ir.Model], dict[str, int]]:
    """ops(model): operator to its count, sub-graphs included."""

    def count(model: ir.Model) -> dict[str, int]:
        return dict(Counter(n.op_type for n in ir.traversal.RecursiveGraphIterator(model.graph)))

    return count


def normal(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Normal random float32."""
    return np.random.default_rng(seed).normal(size=tuple(shape)).astype(np.float32)


@pytest.fixture(name="normal")
def normal_fixture() -> Callable[..., np.ndarray]:
    """normal(shape, seed=0)."""
    return normal
