"""What `import edgekit` offers."""

import pytest

import edgekit


def test_every_error_is_an_edgekit_error(tmp_path):
    with pytest.raises(edgekit.EdgekitError):
        edgekit.load(tmp_path / "missing.ekpkg")
    assert {"EdgekitError", "Model", "load", "load_profile"} <= set(edgekit.__all__)
