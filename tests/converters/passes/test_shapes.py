"""Shapes: fixed, defaulted, refused with the open dims named, and buckets."""

from __future__ import annotations

import numpy as np
import pytest

from edgekit.converters.float_reference import FloatReference
from edgekit.converters.passes.shapes import fix_inputs, infer_shapes, plan_shapes, specialise
from edgekit.errors import ModelError, UsageError

FLAT = """g (float[batch,3,height,width] x) => (float[batch,n] y)
    { s = Shape (x) b = Gather (s, zero) u = Unsqueeze (b, zero_axis) c = Concat <axis = 0> (u, rest)
      p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (x)
      y = Reshape (p, c) }"""
ARRAYS = {"zero": np.array(0), "zero_axis": np.array([0]), "rest": np.array([-1])}


def test_open_dims_are_listed(build):
    with pytest.raises(ModelError, match=r"x\[0\] = batch, x\[2\] = height, x\[3\] = width.*--shape x=Nx3xNxN"):
        plan_shapes(build(FLAT, **ARRAYS), [], [])


def test_an_open_batch_alone_becomes_one_with_a_note(build):
    notes: list[str] = []
    plan = plan_shapes(build("g (float[batch,3] x) => (float[batch,3] y) { y = Relu (x) }"), [], notes)
    assert plan.shapes == ({"x": (1, 3)},)
    assert "batch" in notes[0]


@pytest.mark.parametrize(
    "entry", ["z=1x3x8x8", "x=1x3x8", "x=1x4x8x8", "x=1x3x0x8", "x=1x3x8x-8", "x=axb", "x=", "x=1x3x99999999x8"]
)
def test_bad_shapes_are_refused_in_one_line(build, entry):
    with pytest.raises(UsageError, match="--shape") as caught:
        plan_shapes(build(FLAT, **ARRAYS), [entry], [])
    assert "\n" not in str(caught.value)


def test_one_shape_folds_to_a_static_graph(build, ops):
    model = build(FLAT, **ARRAYS)
    plan = plan_shapes(model, ["2x3x8x6"], [])
    assert plan.buckets == ({},)
    fix_inputs(model, plan)
    static = specialise(model, {})
    assert ops(static) == {"MaxPool": 1, "Reshape": 1}
    assert [tuple(v.shape) for v in static.graph.outputs] == [(2, 36)]


def test_buckets_share_one_graph_and_each_gives_the_same_numbers(build, ops):
    model = build(FLAT, **ARRAYS)
    reference = FloatReference(model.clone())
    plan = plan_shapes(model, ["x=1x3x8x12,x=1x3x8x6", "x=1x3x8x16"], [])
    assert plan.buckets == ({"width": 6}, {"width": 12}, {"width": 16})
    fix_inputs(model, plan)
    for bucket, shapes in zip(plan.buckets, plan.shapes, strict=True):
        static = specialise(model, bucket)
        assert "Shape" not in ops(static)
        assert all(v.shape.is_static() for n in static.graph for v in n.outputs)
        feeds = {"x": np.random.default_rng(0).normal(size=shapes["x"]).astype(np.float32)}
        assert np.array_equal(reference.run(feeds)["y"], FloatReference(static).run(feeds)["y"])


@pytest.mark.parametrize("batch", [2, 3])
def test_baked_batch_is_refused_naming_the_node(build, batch):
    """Fault "batch 3 fails: Reshape with a baked batch"."""
    text = "g (float[n,80,128] x) => (float[1,80,128] y) { r = Relu (x) y = Reshape (r, s) }"
    reference = FloatReference(build(text, s=np.array([1, 80, 128])))
    assert reference.run({"x": np.ones((1, 80, 128), np.float32)})["y"].shape == (1, 80, 128)
    with pytest.raises(ModelError, match=rf"x={batch}x80x128.*Reshape_1.*--shape"):
        reference.run({"x": np.ones((batch, 80, 128), np.float32)})


def test_inference_reaches_into_branches(build):
    text = """g (float[2,3] x, bool c) => (float[2,3] y)
        { y = If (c) < then_branch = t () => (float[2,3] a) { q = Exp (x) a = Relu (q) },
                       else_branch = e () => (float[2,3] b) { b = Neg (x) } > }"""
    model = build(text)
    infer_shapes(model)
    inner = model.graph[0].attributes["then_branch"].as_graph()[0].outputs[0]
    assert tuple(inner.shape) == (2, 3)
