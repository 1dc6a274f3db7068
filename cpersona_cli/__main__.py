"""Run the command line as `python -m cpersona_cli`."""

from .main import main

if __name__ == "__main__":
    raise SystemExit(main())
