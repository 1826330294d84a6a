"""Rounding with the input in view, against errors computed from the inputs themselves."""

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper
from reference.qdq_graphs import conv, make_model

from edgekit.converters.quantization.layer_inputs import LayerInputs, can_observe
from edgekit.converters.quantization.layers import WeightedLayer, read_layer
from edgekit.converters.quantization.rounding import mean_error, rounded_weight
from edgekit.converters.quantization.weights import WEIGHT_LIMIT, channel_scales, quantize_weight


def only_layer(model: ir.Model) -> WeightedLayer:
    layer = read_layer(next(iter(model.graph)))
    assert isinstance(layer, WeightedLayer)
    return layer


def correlated(rng, rows, depth):
    """Rows whose entries move together and do not have mean 0, as activations after a ReLU do."""
    return (np.abs(rng.normal(size=(rows, 3)) @ rng.normal(size=(3, depth))) + 0.1).astype(np.float32)


def matmul_layer(rng, depth=24, channels=10):
    weight = rng.normal(size=(depth, channels)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="m")]
    return only_layer(make_model(nodes, {"x": [None, depth]}, ["y"], {"w": weight}))


def patches_of(layer, x):
    """Every window of x of every group, by plain loops: [groups, windows, depth]."""
    channels, kernel_h, kernel_w = layer.weight.shape[1:]
    padded = np.pad(x, [(0, 0), (0, 0), (kernel_h // 2,) * 2, (kernel_w // 2,) * 2])
    windows = [
        [
            padded[n, g * channels : (g + 1) * channels, oy : oy + kernel_h, ox : ox + kernel_w].reshape(-1)
            for n in range(x.shape[0])
            for oy in range(x.shape[2])
            for ox in range(x.shape[3])
        ]
        for g in range(layer.groups)
    ]
    return np.asarray(windows, np.float64)


@pytest.mark.parametrize("seed", range(4))
def test_no_output_channel_errs_more_than_with_nearest_and_all_together_much_less(seed):
    rng = np.random.default_rng(seed)
    layer = matmul_layer(rng)
    seen, unseen = np.split(correlated(rng, 8000, layer.depth), 2)
    inputs = LayerInputs(layer, 1, seed)
    inputs.update(seen)
    scale = channel_scales(layer.weight, layer.axis) * 8  # coarse, so that rounding matters
    nearest = quantize_weight(layer.weight, layer.axis, scale).values
    rounded = rounded_weight(layer, scale, inputs)
    assert rounded.dtype == np.int8
    assert np.abs(rounded.astype(int)).max() <= WEIGHT_LIMIT
    observed = _squared_errors(inputs.moments[0], layer.weight, rounded * scale)
    assert (observed <= _squared_errors(inputs.moments[0], layer.weight, nearest * scale) * (1 + 1e-9)).all()
    plain = _output_error(unseen, layer.weight, nearest * scale)
    assert _output_error(unseen, layer.weight, rounded * scale) < 0.5 * plain


def _squared_errors(moments, weight, rounded):
    lack = (weight - rounded).astype(np.float64)
    return np.array([lack[:, channel] @ moments @ lack[:, channel] for channel in range(lack.shape[1])])


def _output_error(x, weight, rounded):
    return float(((x.astype(np.float64) @ (weight - rounded)) ** 2).mean())


def test_without_inputs_or_with_a_dead_one_weights_go_to_nearest():
    layer = matmul_layer(np.random.default_rng(0))
    scale = channel_scales(layer.weight, layer.axis)
    nearest = quantize_weight(layer.weight, layer.axis, scale).values
    dead = LayerInputs(layer, 1, 0)
    dead.update(np.zeros((10, layer.depth), np.float32))
    np.testing.assert_array_equal(rounded_weight(layer, scale, None), nearest)
    np.testing.assert_array_equal(rounded_weight(layer, scale, dead), nearest)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_moments_of_a_convolution_are_those_of_its_windows(groups):
    constants = {}
    node = conv("c", "x", "y", 4, 8, constants, group=groups)
    layer = only_layer(make_model([node], {"x": [1, 4, 6, 5]}, ["y"], constants))
    x = np.random.default_rng(1).normal(size=(1, 4, 6, 5)).astype(np.float32)
    inputs = LayerInputs(layer, 1, 0)  # one small sample: every window is drawn
    inputs.update(x)
    windows = patches_of(layer, x)
    expected = np.einsum("gwi,gwj->gij", windows, windows) / windows.shape[1]
    np.testing.assert_allclose(inputs.moments, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(inputs.mean, windows.mean(axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("groups", [1, 2])
def test_mean_error_is_what_the_outputs_lack_on_average(groups):
    constants = {}
    node = conv("c", "x", "y", 4, 6, constants, group=groups)
    layer = only_layer(make_model([node], {"x": [1, 4, 6, 5]}, ["y"], constants))
    x = (np.random.default_rng(2).normal(size=(1, 4, 6, 5)) + 1).astype(np.float32)
    inputs = LayerInputs(layer, 1, 0)
    inputs.update(x)
    scale = channel_scales(layer.weight, 0) * 16
    dequantized = quantize_weight(layer.weight, 0, scale).dequantized()
    lack = (layer.weight - dequantized).reshape(groups, -1, layer.depth).astype(np.float64)
    expected = np.einsum("gwk,gok->gwo", patches_of(layer, x), lack).mean(axis=1).reshape(-1)
    np.testing.assert_allclose(mean_error(layer, dequantized, inputs), expected, rtol=1e-3, atol=1e-5)


def test_what_cannot_be_observed_says_so():
    constants = {"w": np.ones((4, 3, 3, 3), np.float32)}
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], name="t")]
    assert not can_observe(only_layer(make_model(nodes, {"x": [1, 4, 5, 5]}, ["y"], constants)))
    deep = {"w": np.ones((3000, 2), np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="m")]
    assert not can_observe(only_layer(make_model(nodes, {"x": [1, 3000]}, ["y"], deep)))
