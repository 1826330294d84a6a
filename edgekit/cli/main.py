"""Entry point of the `edgekit` command.

Commands are imported when they are called. Every error is one line on standard error; the exit codes are those of
edgekit/errors.py. EDGEKIT_DEBUG=1 shows the traceback as well.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError

import edgekit
from edgekit.errors import EdgekitError, InternalError, StorageError, UsageError

# One line a command: where it lives and what it does.
COMMANDS = {
    "convert": ("edgekit.cli.convert:convert_command", "Convert a model for a device into one package file."),
    "run": ("edgekit.cli.run:run_command", "Run a package on an image, a video, a camera or raw tensors."),
    "bench": ("edgekit.cli.bench:bench_command", "Measure a package here, and say why it is not faster."),
    "demo": ("edgekit.cli.demo.command:demo_command", "Run the whole job on generated pictures."),
}

EXIT_INTERRUPTED = 130


def make_app() -> App:
    """Builds the parser; commands stay unimported."""
    app = App(
        name="edgekit",
        help="Converts trained models for edge boxes, runs them there, and says how fast and why not faster.",
        version=edgekit.__version__,
        help_format="plaintext",
    )
    for name, (target, summary) in COMMANDS.items():
        app.command(target, name=name, help=summary)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits.

    Args:
        arguments: Words after `edgekit`; None: those of the process.
    """
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


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
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _report(StorageError(error.strerror or "the system call failed", where=error.filename))
    except Exception as error:
        return _report(
            InternalError(f"{type(error).__name__}: {error}", hint="this is a fault of edgekit, please report it")
        )
    return 0


def _dispatch(arguments: list[str]) -> None:
    try:
        make_app()(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        text = " ".join(str(error).split()).rstrip(".")
        raise UsageError(text, hint="see edgekit --help") from None


def _report(error: EdgekitError) -> int:
    if os.environ.get("EDGEKIT_DEBUG"):
        traceback.print_exc()
    print(f"edgekit: {error}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    main()
