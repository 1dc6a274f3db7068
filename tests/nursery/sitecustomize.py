"""Read first by every Python that has this folder on its path; only what is to be a daemon knocks at the door."""

import sys

if "--ready-fd" in sys.orig_argv:
    import door

    door.knock()
