"""The start of the command line: ``polyad`` and ``python -m polyad``."""

import gc
import os
import signal
from types import FrameType

_INTERRUPTED = 130  # the exit code of shells for SIGINT


def main() -> None:
    """Import and run the command line; Ctrl-C while it is imported ends the process without a traceback."""
    gc.disable()  # imports leave little to collect, and looking for it takes 5 % of a search
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # typer uses pydantic, which looks for them in 30 ms
    is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_interruptible:
        signal.signal(signal.SIGINT, _exit)
    from polyad.cli import main as run

    run(on_start=_restore_handler if is_interruptible else _collect_garbage)


def _restore_handler() -> None:
    _collect_garbage()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _collect_garbage() -> None:
    gc.freeze()  # modules live to the end
    gc.enable()


def _exit(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)  # an exception could end in a library that catches everything


if __name__ == "__main__":
    main()
