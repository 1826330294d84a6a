"""Runs a native program for another instruction set on this host, in the scalar kernels, which can run every program.

The figures of a conversion for an ARM board are measured with this host's program of the same graph. That the packed
ARM program itself computes the same is shown here: a child process, told to use the scalar kernels, runs the package's
golden sample. (The choice of kernels is made once a process, hence the child.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from edgekit.converters.verify.accuracy import CAP_DB
from edgekit.errors import InternalError

LEAST_DB = 60.0
"""INT8 programs are equal bit for bit; float ones may differ in the last place."""

_TIMEOUT_S = 1800


def check_foreign_program(path: Path) -> float:
    """Runs the golden sample of a package's native variant in scalar kernels.

    Args:
        path: A package with one native variant and golden data.

    Returns:
        Lowest SQNR of any output against the golden ones, dB, at most CAP_DB.

    Raises:
        InternalError: The program fails or computes something else.
    """
    command = [sys.executable, "-m", "edgekit.converters.verify.foreign_program", str(path)]
    environment = {**os.environ, "EDGEKIT_ISA": "scalar"}
    try:
        done = subprocess.run(
            command, env=environment, cwd=path.parent, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InternalError("the packed program did not finish in scalar kernels", got=f"{_TIMEOUT_S} s") from error
    if done.returncode != 0:
        line = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise InternalError("the packed program does not run in scalar kernels", got=line[0])
    reached = min((float(v) for v in json.loads(done.stdout).values()), default=CAP_DB)
    if reached < LEAST_DB:
        raise InternalError(
            "the packed program computes something else than this host's", got=f"{reached:.1f} dB", expected=LEAST_DB
        )
    return reached


def main() -> None:
    """Prints output name to SQNR in dB as JSON."""
    from edgekit.runtime.load import load

    with load(sys.argv[1], "native", warm_up=False) as model:
        result = model.self_test()
    print(json.dumps({name: min(max(value, -CAP_DB), CAP_DB) for name, value in result.sqnr_db.items()}))


if __name__ == "__main__":
    main()
