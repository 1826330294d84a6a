"""Models that ONNX Runtime refuses at first."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from edgekit.engines.onnxruntime import open_onnx_session, run_onnx_session
from edgekit.errors import PackageError

S8_RESHAPE = """<ir_version: 10, opset_import: ["" : {opset}]>
net (float[2,3,4] x) => (float[6,4] y) {{
  q = QuantizeLinear (x, scale, zero)
  d = DequantizeLinear (q, scale, zero)
  y = Reshape (d, shape) }}"""


def s8_reshape(opset: int) -> bytes:
    model = onnx.parser.parse_model(S8_RESHAPE.format(opset=opset))
    constants = {"scale": np.float32(0.5), "zero": np.int8(3), "shape": np.array([6, 4], np.int64)}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
    )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


@pytest.mark.parametrize("opset", [19, 21, 22])
def test_s8_activations_before_a_data_movement(opset):
    """From opset 21 on ONNX Runtime 1.32 on x86 makes an invalid graph of this valid one."""
    x = np.arange(-12, 12, dtype=np.float32).reshape(2, 3, 4) * 0.5
    y = run_onnx_session(open_onnx_session(s8_reshape(opset), 1), {"x": x}, ["y"])["y"]
    assert np.array_equal(y, x.reshape(6, 4))


def test_the_first_refusal_is_reported():
    with pytest.raises(PackageError, match="refuses the model") as caught:
        open_onnx_session(b"no model", 1)
    assert str(caught.value).isprintable()
