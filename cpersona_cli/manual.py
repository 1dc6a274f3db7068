"""`python -m cpersona_cli.manual [ROOT]`: write the manual pages and completion scripts of a checkout anew."""

import sys

from .declare.manual import write

if __name__ == "__main__":
    write(*sys.argv[1:2])
