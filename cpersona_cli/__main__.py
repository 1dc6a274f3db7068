"""Run the command line as `python -m cpersona_cli`."""

from _signal import SIGINT, default_int_handler, getsignal, signal
from os import _exit

if __name__ == "__main__":
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, lambda *_: _exit(130))  # quietly, until `main` can do better

    from .main import entry

    entry()
