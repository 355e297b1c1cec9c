"""A deployment in words: what runs where, what is shared, what that saves, who is refused and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from plait.deployment.charging import charged_alone
from plait.deployment.deployment import Deployment, LinkUse, Shared, SiteUse
from plait.deployment.family_sizes import FamilyKind, kind_of
from plait.quantity_text import bytes_per_s_text, bytes_text, counted, number_text

_WOVEN_SHOWN = 5
_WORDS = {FamilyKind.TREE: "windows", FamilyKind.JOIN: "joins", FamilyKind.SELECTION: "filters"}


@dataclass(frozen=True)
class Sharing:
    """What queries have in common: as deployed, and as if each were computed the same way by itself."""

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
    users_of = deployment.users
    return Sharing(
        operators=len(deployment.operators),
        shared_operators=sum(len(users) > 1 for users in users_of.values()),
        cores=deployment.cost.cores,
        unshared_operators=sum(len(users) for users in users_of.values()),
        unshared_cores=sum(charged_alone(deployment).values()),
    )


def summary(deployment: Deployment, refusals: int | None = None) -> str:
    """The deployment as a few lines of text, with so many refusals at most."""
    cost, shared = deployment.cost, sharing(deployment)
    lines = [
        f"queries    {len(deployment.admitted):,} admitted, {len(deployment.refused):,} refused",
        f"operators  {shared.operators:,}, of which {shared.shared_operators:,} serve several queries",
        f"cores      {number_text(cost.cores)}, the busiest part {number_text(cost.bottleneck_cores)}",
        f"state      {number_text(cost.state_rows)} rows, {bytes_text(cost.state_bytes)}",
    ]
    if len(deployment.sites) > 1:
        transit = bytes_text(cost.network_bytes_in_transit)
        lines.append(f"network    {bytes_per_s_text(cost.network_bytes_per_s)}, {transit} in transit")
    lines.append(
        f"sharing    every query for itself would take {shared.unshared_operators:,} operators and "
        f"{number_text(shared.unshared_cores)} cores: {shared.saved_share:.0%} saved"
    )
    several = sorted((each for each in deployment.shared if len(each.queries) > 1), key=_by_size)
    if several:
        shown_cells = map(_woven_cells, several[:_WOVEN_SHOWN])
        lines += [
            "",
            "computed together, beyond equal operators",
            *(f"  {line}" for line in _aligned(shown_cells)),
        ]
        if len(several) > _WOVEN_SHOWN:
            lines.append(f"  … and {len(several) - _WOVEN_SHOWN:,} more")
    lines += ["", "sites", *(f"  {line}" for line in _aligned(map(_site_cells, deployment.sites)))]
    if deployment.links:
        lines += ["", "links", *(f"  {line}" for line in _aligned(map(_link_cells, deployment.links)))]
    if deployment.refused:
        shown = deployment.refused[:refusals]
        lines += ["", "refused", *(f"  {query.name}: {query.reason}" for query in shown)]
        if len(shown) < len(deployment.refused):
            lines.append(f"  … and {len(deployment.refused) - len(shown):,} more: --full shows all")
    return "\n".join(lines)


def _by_size(shared: Shared) -> tuple[int, str]:
    return -len(shared.queries), shared.queries[0]


def _woven_cells(shared: Shared) -> list[str]:
    """What is one, what it is charged, where it is computed, and what it would cost elsewhere."""
    others = counted(len(shared.queries) - 1, "other")
    kind = _WORDS[kind_of(shared)]
    cores = f"{number_text(shared.cores_used)} cores"
    if shared.cores_used < shared.apart_cores:
        cores += f" instead of {number_text(shared.apart_cores)}"
    elsewhere = [
        f"{number_text(each)} in {engine}" for engine, each in shared.cores.items() if engine != shared.engine
    ]
    return [
        f"{kind} of {shared.queries[0]} and {others}",
        cores,
        f"in {shared.engine}; {', '.join(elsewhere)}",
    ]


def _site_cells(site: SiteUse) -> list[str]:
    return [
        site.name,
        _used(site.cores_used, site.cores, number_text) + " cores",
        _used(site.memory_bytes_used, site.memory_bytes, bytes_text),
        "in " + _used(site.in_bytes_per_s_used, site.in_bytes_per_s, bytes_per_s_text),
        "out " + _used(site.out_bytes_per_s_used, site.out_bytes_per_s, bytes_per_s_text),
    ]


def _link_cells(link: LinkUse) -> list[str]:
    return [
        f"{link.source} → {link.target}",
        _used(link.bytes_per_s_used, link.bandwidth_bytes_per_s, bytes_per_s_text),
        "" if link.latency_us is None else f"{link.latency_us / 1000:g} ms",
    ]


def _used(used: float, limit: float | None, show: Callable[[float], str]) -> str:
    return show(used) if limit is None else f"{show(used)} of {show(limit)}"


def _aligned(rows: Iterable[list[str]]) -> list[str]:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in table]
