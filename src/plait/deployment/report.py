"""What `plait plan` says: a summary, which operators are shared by whom, and what every query needs."""

from __future__ import annotations

from collections.abc import Sequence

from plait.deployment.deployment import Deployment
from plait.deployment.describe import description
from plait.deployment.explain import sharing, summary
from plait.quantity_text import bytes_per_s_text, counted, number_text, rate_text
from plait.table_text import table_text

LINES_SHOWN = 20
NAMES_SHOWN = 3
CHARACTERS_SHOWN = 60


def headline(deployment: Deployment, planner: str) -> str:
    queries = counted(len(deployment.queries), "query", "queries")
    refused = f", {len(deployment.refused):,} refused" if deployment.refused else ""
    return f"{queries} planned by {planner}{refused}"


def caption(deployment: Deployment) -> str:
    """What is shared and what that saves, in one line."""
    shared = sharing(deployment)
    parts = [
        f"{counted(shared.operators, 'operator')}, {shared.shared_operators:,} of them shared",
        f"{number_text(shared.cores)} cores instead of {number_text(shared.unshared_cores)}",
    ]
    if len(deployment.sites) > 1:
        parts.append(f"{bytes_per_s_text(deployment.cost.network_bytes_per_s)} between sites")
    return "; ".join(parts)


def report_text(deployment: Deployment, planner: str, *, full: bool = False, width: int | None = None) -> str:
    """Headline and costs, then the shared operators and the queries; what is long is cut unless `full`."""
    limit = None if full else LINES_SHOWN
    parts = [f"{headline(deployment, planner)}\n\n{summary(deployment, limit)}"]
    parts += _shared(deployment, full, width)
    parts += _queries(deployment, limit, width)
    return "\n\n".join(parts)


def _shared(deployment: Deployment, full: bool, width: int | None) -> list[str]:
    users = deployment.users
    shared = [operator for operator in deployment.operators if len(users[operator.id]) > 1]
    shared.sort(key=lambda operator: -len(users[operator.id]))  # stable: otherwise as rows flow
    rows = []
    for operator in shared if full else shared[:LINES_SHOWN]:
        stream = deployment.stream_by_id[operator.output]
        what = description(deployment.plans[stream.signature])
        rows.append(
            [
                str(operator.kind),
                ", ".join(stream.sources),
                what if full or len(what) <= CHARACTERS_SHOWN else what[: CHARACTERS_SHOWN - 1] + "…",
                rate_text(stream.rate_rows_per_s),
                _names(sorted(users[operator.id]), full),
            ]
        )
    return _listed(["shared", "of", "what", "gives", "for"], rows, len(shared), width)


def _queries(deployment: Deployment, limit: int | None, width: int | None) -> list[str]:
    rows = []
    several_sites = len(deployment.sites) > 1
    for query in deployment.admitted[:limit]:
        assert query.stream is not None, query.name
        needed = deployment.operators_of(query)
        shared = sum(len(deployment.users[operator.id]) > 1 for operator in needed)
        work = f"{counted(len(needed), 'operator')}, {shared:,} shared"
        rate = deployment.stream_by_id[query.stream].rate_rows_per_s
        at = [query.site or ""] if several_sites else []
        rows.append([query.name, *at, work, rate_text(rate)])
    columns = ["query", *(["at"] if several_sites else []), "needs", "gives"]
    return _listed(columns, rows, len(deployment.admitted), width)


def _names(names: Sequence[str], full: bool) -> str:
    if full or len(names) <= NAMES_SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:NAMES_SHOWN])} and {len(names) - NAMES_SHOWN:,} more"


def _listed(
    columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, width: int | None
) -> list[str]:
    """The table, if there is anything in it, and how many rows were left out."""
    if not rows:
        return []
    more = f"\n… {total - len(rows):,} more: --full shows all" if len(rows) < total else ""
    return [table_text(columns, rows, width=width) + more]
