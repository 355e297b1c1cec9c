"""`plait check`: is everything that is declared right?"""

from __future__ import annotations

import click

from plait.cli.invocation import (
    files_argument,
    json_option,
    notify,
    open_session,
    progress,
    sample_option,
    terminal_width,
    write_json,
    write_result,
)


@click.command("check")
@files_argument
@sample_option
@json_option
def command(files: tuple[str, ...], sample: bool, as_json: bool) -> None:
    """Check declarations and queries, and say everything that is wrong with them.

    FILE is an SQL file, a folder (all *.sql files in it) or - for standard input. Several files are read as
    one: a query may use what another file declares, in any order. Nothing is run; data is read with --sample.

    \b
    Examples:
      plait check queries.sql
      plait check queries.sql --sample
      plait check streams.sql alerts/ --json
      ./make_queries | plait check streams.sql -

    The exit code is 0 if all is well and 2 if anything is wrong.
    """
    with open_session(files) as session, progress("sampling" if sample else "checking"):
        check = session.check(sample=sample)
    if as_json:
        write_json(check.to_json())
    else:
        write_result(check.to_text(terminal_width(None)), None)
    notify(check.notices)
