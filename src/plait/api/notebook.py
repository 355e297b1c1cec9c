"""Shows something again and again: in a notebook in one place, elsewhere a line each time.

Nothing of a notebook's is imported unless this is one: then it is there already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


def shown_anew(value: object) -> Callable[[], None]:
    """What shows the value as it is now."""
    if not _in_notebook():
        return lambda: _write_line(value)
    handle = sys.modules["IPython"].display.DisplayHandle()
    is_new = True

    def show() -> None:
        nonlocal is_new
        handle.display(value) if is_new else handle.update(value)
        is_new = False

    return show


def _in_notebook() -> bool:
    """Whether what is displayed can be displayed anew: a terminal's IPython cannot do that."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _write_line(value: object) -> None:
    sys.stdout.write(f"{value!r}\n")
    sys.stdout.flush()
