"""From a deployment to what runs: one fragment a query, and which of the two ways computes it.

Spark's own operators are used wherever they give exactly the rows of the definition. The reasons why they do
not, all of them found by comparing rows or in what Spark refuses:

| in the plan | why Spark cannot |
|---|---|
| a row window | rows are numbered once the watermark has passed them: no operator does that |
| a window that holds a row at very many ticks | Spark would write the row, and keep it, once for each tick |
| windows finer than a millisecond | Spark's watermarks are whole milliseconds |
| rows of a window as they are, at every tick | only groups of rows wait until a tick is closed |
| a table below something that keeps rows | it has to be seen as of the batch that gives the result |
| a join of rows without an equality | Spark refuses it |
| `ORDER BY … LIMIT` below something else | Spark has no such streaming operator |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plait.catalog import Catalog
from plait.deployment.deployment import Deployment
from plait.deployment.fragments import Fragment, Input, Way
from plait.deployment.native_lowering import NotNativeError, native_stages
from plait.deployment.row_by_row import row_by_row
from plait.errors import InternalError, UnsupportedError
from plait.plan.nodes import Node


def fragments(deployment: Deployment, catalog: Catalog) -> tuple[Fragment, ...]:
    """What runs for the admitted queries, each by itself, in the order of their declaration."""
    made = []
    for query in deployment.admitted:
        assert query.stream is not None, query.name
        plan = deployment.plans[deployment.stream_by_id[query.stream].signature]
        _check_sources(plan, catalog)
        made.append(fragment(query.name, query.columns, plan))
    return tuple(made)


def fragment(name: str, columns: Sequence[str], plan: Node, *, way: Way | None = None) -> Fragment:
    """How a query runs: natively if Spark can, or in the given way: an `UnsupportedError` if it cannot."""
    if len(columns) != len(plan.types):
        raise InternalError(
            "columns", f"the query `{name}` has {len(columns)} columns, but its plan {len(plan.types)}"
        )
    inputs = tuple(Input(stream, chain) for stream, chain in _inputs(plan))
    if way is Way.DATABASE:
        return Fragment(name, tuple(columns), plan, inputs, Way.DATABASE)
    try:
        stages = native_stages(plan)
    except NotNativeError as obstacle:
        if way is Way.NATIVE:
            raise UnsupportedError(
                "not-native",
                f"the query `{name}` cannot run on Spark's operators alone",
                detail="\n".join(obstacle.reasons),
                hint="let DuckDB compute what Spark cannot: that is the default",
            ) from None
        return Fragment(name, tuple(columns), plan, inputs, Way.DATABASE, obstacle.reasons)
    return Fragment(name, tuple(columns), plan, inputs, Way.NATIVE, (), stages)


def _inputs(plan: Node) -> Iterator[tuple[str, Node]]:
    """The largest sub-plans that need neither state nor a second stream, each once."""
    seen: set[Node] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        simple = row_by_row(node)
        if simple is not None:
            yield simple.scan.stream, node
        else:
            stack.extend(reversed(node.inputs))


def _check_sources(plan: Node, catalog: Catalog) -> None:
    for stream, _ in _inputs(plan):
        if stream.lower() not in catalog.streams:
            raise InternalError("unknown-stream", f"a plan reads `{stream}`, which is not declared")
