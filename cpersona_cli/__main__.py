"""Run the command line as `python -m cpersona_cli`."""

from .main import entry

if __name__ == "__main__":
    entry()
