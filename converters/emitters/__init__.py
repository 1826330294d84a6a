"""Writers of artefacts: ONNX in QDQ form, OpenVINO IR."""
