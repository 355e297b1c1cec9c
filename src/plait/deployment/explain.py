"""A deployment in words: what runs where, what is shared, what that saves, who is refused and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plait.deployment.deployment import Deployment, LinkUse, SiteUse
from plait.quantity_text import bytes_per_s_text, bytes_text, number_text

REFUSALS_SHOWN = 20


@dataclass(frozen=True)
class Sharing:
    """What operators have in common: as deployed, and as if every query ran the same operators for itself."""

    operators: int
    shared_operators: int
    cores: float
    unshared_operators: int
    unshared_cores: float

    @property
    def saved_share(self) -> float:
        """Of the cores, between 0 and 1."""
        return 1.0 - self.cores / self.unshared_cores if self.unshared_cores else 0.0


def sharing(deployment: Deployment) -> Sharing:
    queries_of: Counter[str] = Counter()
    for query in deployment.admitted:
        queries_of.update(operator.id for operator in deployment.operators_of(query))
    cores_of = {operator.id: operator.cores for operator in deployment.operators}
    return Sharing(
        operators=len(deployment.operators),
        shared_operators=sum(number > 1 for number in queries_of.values()),
        cores=deployment.cost.cores,
        unshared_operators=queries_of.total(),
        unshared_cores=sum(cores_of[id_] * number for id_, number in queries_of.items()),
    )


def summary(deployment: Deployment) -> str:
    """The deployment as a few lines of text."""
    cost, shared = deployment.cost, sharing(deployment)
    lines = [
        f"queries    {len(deployment.admitted):,} admitted, {len(deployment.refused):,} refused",
        f"operators  {shared.operators:,}, of which {shared.shared_operators:,} serve several queries",
        f"cores      {number_text(cost.cores)}, the busiest operator {number_text(cost.bottleneck_cores)}",
        f"state      {number_text(cost.state_rows)} rows, {bytes_text(cost.state_bytes)}",
    ]
    if len(deployment.sites) > 1:
        transit = bytes_text(cost.network_bytes_in_transit)
        lines.append(f"network    {bytes_per_s_text(cost.network_bytes_per_s)}, {transit} in transit")
    lines.append(
        f"sharing    every query for itself would take {shared.unshared_operators:,} operators and "
        f"{number_text(shared.unshared_cores)} cores: {shared.saved_share:.0%} saved"
    )
    lines += ["", "sites", *(f"  {line}" for line in _aligned(map(_site_cells, deployment.sites)))]
    if deployment.links:
        lines += ["", "links", *(f"  {line}" for line in _aligned(map(_link_cells, deployment.links)))]
    if deployment.refused:
        shown = deployment.refused[:REFUSALS_SHOWN]
        lines += ["", "refused", *(f"  {query.name}: {query.reason}" for query in shown)]
        if len(shown) < len(deployment.refused):
            lines.append(f"  … and {len(deployment.refused) - len(shown):,} more")
    return "\n".join(lines)


def _site_cells(site: SiteUse) -> list[str]:
    return [
        site.name,
        _used(number_text(site.cores_used), None if site.cores is None else number_text(site.cores))
        + " cores",
        _used(bytes_text(site.memory_bytes_used), site.memory_bytes and bytes_text(site.memory_bytes)),
        "in " + _used(bytes_per_s_text(site.in_bytes_per_s_used), _rate(site.in_bytes_per_s)),
        "out " + _used(bytes_per_s_text(site.out_bytes_per_s_used), _rate(site.out_bytes_per_s)),
    ]


def _link_cells(link: LinkUse) -> list[str]:
    return [
        f"{link.source} → {link.target}",
        _used(bytes_per_s_text(link.bytes_per_s_used), _rate(link.bandwidth_bytes_per_s)),
        f"{link.latency_us / 1000:g} ms",
    ]


def _rate(bytes_per_s: float | None) -> str | None:
    return None if bytes_per_s is None else bytes_per_s_text(bytes_per_s)


def _used(used: str, limit: object) -> str:
    return f"{used} of {limit}" if limit else used


@dataclass(frozen=True)
class Compared:
    """One line of a comparison."""

    planner: str
    status: str
    seconds: float
    deployment: Deployment


def comparison(plans: Sequence[Compared]) -> str:
    """Several planners on one workload, as a table."""
    header = ["planner", "status", "admitted", "operators", "cores", "network", "state", "seconds"]
    rows = [
        [
            plan.planner,
            plan.status,
            f"{len(plan.deployment.admitted):,} of {len(plan.deployment.queries):,}",
            f"{len(plan.deployment.operators):,}",
            number_text(plan.deployment.cost.cores),
            bytes_per_s_text(plan.deployment.cost.network_bytes_per_s),
            f"{number_text(plan.deployment.cost.state_rows)} rows",
            f"{plan.seconds:.2f}",
        ]
        for plan in plans
    ]
    return "\n".join(_aligned([header, *rows]))


def _aligned(rows: Iterable[list[str]]) -> list[str]:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table]
