"""What the folders of queries and streams are called."""

from __future__ import annotations

import re
from hashlib import sha256


def folder_name(name: str) -> str:
    """The folder of a query or stream: its key where that is a plain name, else one made from it.

    >>> folder_name("Gate_17"), folder_name("../x")
    ('gate_17', '---x-d6b96a97')
    """
    key = name.lower()
    if key.isascii() and key.isidentifier():
        return key
    # What file systems or Spark take for more than a sign of a name is left out; the hash tells names apart.
    return f"{re.sub('[^a-z0-9_]', '-', key)[:60]}-{sha256(key.encode()).hexdigest()[:8]}"
