"""The queries over the airline: the enterprise workload of the hierarchical paper (§4.1.1), of any size.

| part | share | template | what differs |
|---|---|---|---|
| gate agents | 80 % | Q1: flights, baggage, check-ins of a flight | the flight's number |
| terminals | 15 % | Q2: flights, weather, check-ins, baggage of a terminal | the terminal |
| monitoring | 5 % | any combination of the five sources | streams, predicate, ranges and slides of 1–5 min |

Q1 and Q2 are evaluated every minute in the paper; a join without aggregate gives each combination once here,
and has no SLIDE. Where the paper leaves monitoring open, we decide: one to three sources that can be joined,
one selection, and, with a slide, a count for each value of what they are joined by (a single source always
has one, else half of them do).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_GATE = """\
SELECT fl.gate, bg.status, ci.status
  FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE], checkins ci [RANGE 1 MINUTE]
  WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = {flight}"""

_TERMINAL = """\
SELECT fl.num, fl.gate, bg.area, ci.status, wr.forecast
  FROM flights fl [RANGE 5 MINUTES], weather wr [RANGE 5 MINUTES],
       checkins ci [RANGE 1 MINUTE], baggage bg [RANGE 1 MINUTE]
  WHERE fl.dest = wr.city AND fl.num = ci.flight AND fl.num = bg.flight
    AND fl.terminal = '{terminal}' AND fl.carrier_code = 'DL'"""

_ALIASES = {"flights": "fl", "checkins": "ci", "baggage": "bg", "weather": "wr", "sales": "sa"}
# What may be joined, each with the column that the first is joined by with all the others.
_COMBINATIONS = (
    ("fl.num", ()),
    ("ci.flight", ()),
    ("bg.flight", ()),
    ("wr.city", ()),
    ("sa.dest", ()),
    ("fl.num", ("ci.flight",)),
    ("fl.num", ("bg.flight",)),
    ("ci.flight", ("bg.flight",)),
    ("fl.dest", ("wr.city",)),
    ("fl.dest", ("sa.dest",)),
    ("wr.city", ("sa.dest",)),
    ("fl.num", ("ci.flight", "bg.flight")),
    ("fl.dest", ("wr.city", "sa.dest")),
)
_SELECTIONS = {
    "fl": ("fl.carrier_code = 'UA'", "fl.status = 'delayed'", "fl.terminal = 'T'"),
    "ci": ("ci.status = 'upgraded'", "ci.status = 'standby'", "ci.status IS NULL"),
    "bg": ("bg.area = 'N'", "bg.status = 'misrouted'", "bg.weight_kg > 23"),
    "wr": ("wr.forecast IN ('storm', 'snow')", "wr.celsius < 0", "wr.forecast = 'fog'"),
    "sa": ("sa.seats >= 3", "sa.channel = 'phone'", "sa.fare > 500"),
}
_SHOWN = {
    "fl": ("fl.num", "fl.gate", "fl.status"),
    "ci": ("ci.passenger", "ci.status"),
    "bg": ("bg.tag", "bg.area"),
    "wr": ("wr.city", "wr.forecast"),
    "sa": ("sa.dest", "sa.fare"),
}


def airline_queries(
    count: int, seed: int, *, flights: int = 120, sites: Sequence[str] = ()
) -> tuple[str, ...]:
    """So many CREATE CONTINUOUS QUERY statements over the streams of examples/airline.sql.

    The shares are exact, as far as whole numbers allow. `flights` is how many are open, of which each gate
    agent looks at one; 120 are open at the rates of Fig. 5. With `sites`, each query is wanted at one of
    them.

    >>> print(airline_queries(1, seed=7)[0])
    CREATE CONTINUOUS QUERY gate_1 AS
      SELECT fl.gate, bg.status, ci.status
      FROM flights fl [RANGE 5 MINUTES], baggage bg [RANGE 1 MINUTE], checkins ci [RANGE 1 MINUTE]
      WHERE fl.num = ci.flight AND fl.num = bg.flight AND fl.num = 42;
    """
    random = Random(seed)
    monitoring = round(0.05 * count)
    terminals = round(0.15 * count)
    kinds = ["monitoring"] * monitoring + ["terminal"] * terminals
    kinds += ["gate"] * (count - len(kinds))
    random.shuffle(kinds)
    statements = []
    for number, kind in enumerate(kinds, start=1):
        match kind:
            case "gate":
                select = _GATE.format(flight=random.randint(1, flights))
            case "terminal":
                select = _TERMINAL.format(terminal=random.choice("ST"))
            case _:
                select = _monitoring(random)
        site = f" AT {random.choice(sites)}" if sites else ""
        statements.append(f"CREATE CONTINUOUS QUERY {kind}_{number}{site} AS\n  {select};")
    return tuple(statements)


def _monitoring(random: Random) -> str:
    key, others = random.choice(_COMBINATIONS)
    aliases = [column.split(".")[0] for column in (key, *others)]
    ticks = not others or random.random() < 0.5
    slide = f" SLIDE {_minutes(random)}" if ticks else ""
    names = {alias: name for name, alias in _ALIASES.items()}
    windows = [f"{names[alias]} {alias} [RANGE {_minutes(random)}{slide}]" for alias in aliases]
    conditions = [f"{key} = {other}" for other in others]
    conditions.append(random.choice(_SELECTIONS[random.choice(aliases)]))
    source = f"FROM {', '.join(windows)}\n  WHERE {' AND '.join(conditions)}"
    if ticks:
        return f"SELECT window_end, {key}, count(*) AS updates\n  {source}\n  GROUP BY {key}"
    shown = ", ".join(column for alias in aliases for column in _SHOWN[alias])
    return f"SELECT {shown}\n  {source}"


def _minutes(random: Random) -> str:
    count = random.randint(1, 5)
    return f"{count} MINUTE{'S' if count > 1 else ''}"
