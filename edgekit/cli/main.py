"""Entry point of the `edgekit` command.

Commands are imported when they are called. Every error is one line on standard error; the exit codes are those of
edgekit/errors.py. EDGEKIT_DEBUG=1 shows the traceback as well.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NamedTuple

from cyclopts import App, CycloptsError

import edgekit
from edgekit.cli.output import help_console
from edgekit.errors import EdgekitError, InternalError, StorageError, UsageError


class Command(NamedTuple):
    """Where a command lives, what it does and an example."""

    target: str
    summary: str
    example: str


COMMANDS = {
    "convert": Command(
        "edgekit.cli.convert:convert_command",
        "Convert a model for a device: clean, quantize, pack, verify against the float model, write one file.",
        "edgekit convert yolov8n.onnx --device raspberry-pi-5 --calib images/ --preprocess yolo -o yolov8n.ekpkg",
    ),
    "run": Command(
        "edgekit.cli.run:run_command",
        "Run a package on an image, a video, a camera or raw tensors.",
        "edgekit run yolov8n.ekpkg street.mp4 -o annotated.mp4",
    ),
    "bench": Command(
        "edgekit.cli.bench:bench_command",
        "Measure latency, throughput and cold start, and say why it is not faster.",
        "edgekit bench yolov8n.ekpkg --threads 2 --scenario single-stream --scenario throughput --layers",
    ),
    "tune": Command(
        "edgekit.cli.tune:tune_command",
        "Measure how each layer runs fastest on this device, and keep it beside the package.",
        "edgekit tune yolov8n.ekpkg --threads 2",
    ),
    "inspect": Command(
        "edgekit.cli.inspect:inspect_command",
        "Verify a package or a native program and show what it holds.",
        "edgekit inspect yolov8n.ekpkg --layers",
    ),
    "devices list": Command("edgekit.cli.devices:list_command", "List device profiles.", "edgekit devices list --json"),
    "devices show": Command(
        "edgekit.cli.devices:show_command",
        "Show a device profile and the source of every figure.",
        "edgekit devices show raspberry-pi-5",
    ),
    "devices detect": Command(
        "edgekit.cli.devices:detect_command", "Show what is found out about this machine.", "edgekit devices detect"
    ),
    "devices measure": Command(
        "edgekit.cli.devices:measure_command",
        "Measure this machine's peaks and keep them for this-machine.",
        "edgekit devices measure --threads 4",
    ),
    "doctor": Command(
        "edgekit.cli.doctor:doctor_command",
        "Say what is installed, what can run here and what would help.",
        "edgekit doctor --json",
    ),
    "demo": Command(
        "edgekit.cli.demo.command:demo_command",
        "Run the whole job on generated pictures and compare engines.",
        "edgekit demo --out demo",
    ),
}

GROUPS = {"devices": "Device profiles, and what there is to know about this machine."}

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143  # as shells say: 128 and the signal's number


class Terminated(KeyboardInterrupt):
    """SIGTERM, as systemd and containers send it: what Ctrl-C ends in good order, it does too."""


def make_app() -> App:
    """Builds the parser; commands stay unimported."""
    app = App(
        name="edgekit",
        help="Converts trained models for edge boxes, runs them there, and says how fast and why not faster.",
        version=edgekit.__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,  # run() tells Ctrl-C from SIGTERM
    )
    for group, summary in GROUPS.items():
        app.command(App(name=group, help=summary, help_format="plaintext"))
    for name, command in COMMANDS.items():
        *groups, last = name.split()
        parent = app[groups[0]] if groups else app
        parent.command(command.target, name=last, help=command.summary, help_epilogue=f"Example: {command.example}")
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits.

    Args:
        arguments: Words after `edgekit`; None: those of the process.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: >&-
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123 - lives as long as the process
    signal.signal(signal.SIGTERM, _terminate)
    code = run(sys.argv[1:] if arguments is None else arguments)
    _output_is_stuck()
    sys.exit(code)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def run(arguments: Sequence[str]) -> int:
    """Runs the command line.

    Args:
        arguments: Words after `edgekit`.

    Returns:
        The exit code.
    """
    try:
        _dispatch(list(arguments))
        sys.stdout.flush()
    except EdgekitError as error:
        return _report(error)
    except KeyboardInterrupt as error:
        return EXIT_TERMINATED if isinstance(error, Terminated) else EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has gone
        _drop_output()
        return 0
    except OSError as error:
        where = error.filename or ("standard output" if _output_is_stuck() else None)
        hint = "check the path, its permissions and the space left" if error.filename else None
        return _report(StorageError(error.strerror or "the system call failed", where=where, hint=hint))
    except Exception as error:
        return _report(
            InternalError(f"{type(error).__name__}: {error}", hint="this is a fault of edgekit, please report it")
        )
    return 0


def _output_is_stuck() -> bool:
    """Tells whether standard output still holds what it can't write; drops it then, or Python would fail at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
        return True
    return False


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: list[str]) -> None:
    app = make_app()
    if len(arguments) < 2 or {"-h", "--help"} & set(arguments):
        app.console = help_console()
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        text = " ".join(str(error).split()).rstrip(".")
        command = next((name for name in COMMANDS if name.split() == arguments[: len(name.split())]), "")
        raise UsageError(text, hint=f"see {' '.join(('edgekit', *command.split(), '--help'))}") from None


def _report(error: EdgekitError) -> int:
    if os.environ.get("EDGEKIT_DEBUG"):
        traceback.print_exc()
    print(f"edgekit: {error}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    main()
