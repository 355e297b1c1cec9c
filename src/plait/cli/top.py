"""`plait top`: how busy a running system is, as it goes on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from time import sleep

import click

from plait.api import attach
from plait.cli.invocation import (
    folder_option,
    is_terminal,
    json_option,
    terminal_width,
    write_json,
    write_result,
)
from plait.runtime import DEFAULT_STATE

REFRESH_SECONDS = 1.0
# Lines beside those of queries: headers, streams and fragments have to have some room too.
_OTHER_LINES = 14


@click.command("top")
@folder_option("--state", DEFAULT_STATE, "The state folder of the system.")
@click.option("--once", is_flag=True, help="Show it once, as it also is where no terminal is.")
@json_option
def command(state: str, once: bool, as_json: bool) -> None:
    """Show how busy a running system is.

    Of streams, the rows that come and how far the watermark is behind the clock; of fragments, how long
    micro-batches take of the time there is, and what is kept; of queries, rows and their share of the cost:
    of all that operators take, divided among those whom they serve. The greatest shares come first.

    \b
    Examples:
      plait top
      plait top --once --json --state /data/state
    """
    system = attach(state)
    if as_json:
        write_json(system.statistics().to_json())
        return
    if once or not is_terminal(sys.stdout):
        write_result(system.statistics().to_text(terminal_width(None)), None)
        return
    _refresh(lambda size: system.statistics().to_text(size.columns, max(1, size.lines - _OTHER_LINES)))


def _refresh(shown: Callable[[os.terminal_size], str]) -> None:
    """Show it anew every second, until Ctrl-C."""
    from rich.live import Live
    from rich.text import Text

    with suppress(KeyboardInterrupt), Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(Text(shown(shutil.get_terminal_size())), refresh=True)
            sleep(REFRESH_SECONDS)
