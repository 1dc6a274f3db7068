"""What each method of the wire takes, as JSON Schema: read from the file that ``rpc/schemas.py`` writes.

Contract: tools.schemas.
"""

import json
import os

FILE = os.path.join(os.path.dirname(__file__), "params.json")


def load() -> dict[str, dict]:
    """Return method -> the schema of its params, as the Struct has it that decodes them."""
    with open(FILE, encoding="utf-8") as file:
        return json.load(file)
