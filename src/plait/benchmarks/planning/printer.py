"""Prints a query as SQL: plainly, or in one of the many spellings that mean the same.

Given a random generator, everything that cannot matter is chosen by it: aliases, the case of names and
keywords, white space and comments, comma or JOIN … ON, the place of a condition, which pairs of
an equality class are compared, the window's spelling and its units, CTE or subquery, `<>` or `!=`, redundant
parentheses. Without one, the text is the shortest straightforward one. How a query is *built* differently is
`disguise`'s part.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, assert_never

from plait.benchmarks.planning.model import (
    Aggregation,
    AllOf,
    Among,
    AnyOf,
    Apply,
    Between,
    Block,
    BlockItem,
    Case,
    Column,
    Comparison,
    Constant,
    Equality,
    Expression,
    InstantWindow,
    IsNull,
    Item,
    Like,
    Negation,
    OrderKey,
    Predicate,
    Relation,
    RelationItem,
    RowWindow,
    Select,
    TickWindow,
    UnionAll,
    Window,
    WindowEdge,
    columns_of_item,
    items_used,
)

Choice = TypeVar("Choice")

INFIX = ("+", "-", "*", "/", "%", "||")
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "<=>": "<=>"}
SYNONYMS = {
    "stddev_samp": ("stddev", "stddev_samp"),
    "var_samp": ("variance", "var_samp"),
    "upper": ("upper", "ucase"),
    "lower": ("lower", "lcase"),
    "substring": ("substring", "substr"),
    "length": ("length", "char_length"),
}
ALIASES = ("a", "b", "c", "lhs", "rhs", "first_one", "other", "src", "w", "zz", "fl", "bg")


@dataclass(frozen=True)
class Scope:
    """How the columns of a block's items are written: alias and printed name, and which need no alias."""

    aliases: Mapping[str, str]
    names: Mapping[tuple[str, str], str]
    unqualified: frozenset[tuple[str, str]]
    window: str  # what stands before `start` and `end`


class Printer:
    """Prints one statement at a time; `rng` None prints plainly."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self.rng = rng
        self._with: list[tuple[str, str]] = []
        self._fresh = 0

    def query(self, name: str, block: Block) -> str:
        """The whole `CREATE CONTINUOUS QUERY` statement. Output names stay: other queries may read them."""
        self._with, self._fresh = [], 0
        body = self._block(block, {})
        if self._with:
            parts = ", ".join(f"{cte}{self._space()}{self._word('AS')} ({text})" for cte, text in self._with)
            body = self._join(self._word("WITH"), parts, body)
        return (
            self._join(self._words("CREATE CONTINUOUS QUERY"), self._name(name), self._word("AS"), body) + ";"
        )

    # Choices.

    def _maybe(self, probability: float = 0.5) -> bool:
        return self.rng is not None and self.rng.random() >= 1 - probability

    def _pick(self, options: Sequence[Choice]) -> Choice:
        return options[0] if self.rng is None else self.rng.choice(options)

    def _shuffled(self, values: Sequence[Choice]) -> list[Choice]:
        result = list(values)
        if self.rng is not None:
            self.rng.shuffle(result)
        return result

    # Words and blanks.

    def _space(self) -> str:
        if not self._maybe(0.15):
            return " "
        return self._pick(("  ", "\n", "\n    ", "\t", " /* as agreed */ ", " -- see the manual\n"))

    def _join(self, *texts: str) -> str:
        return "".join(text if index == 0 else self._space() + text for index, text in enumerate(texts))

    def _word(self, keyword: str) -> str:
        return self._pick((keyword, keyword.lower(), keyword.capitalize())) if self._maybe(0.3) else keyword

    def _words(self, keywords: str) -> str:
        """Several keywords that make one; sqlglot reads them as one only if no comment is between them."""
        return self._pick((" ", " ", "\n", "  ")).join(self._word(keyword) for keyword in keywords.split())

    def _name(self, name: str) -> str:
        if not self._maybe(0.1):
            return name
        return self._pick((name.upper(), f"`{name}`", name.capitalize()))

    def _fresh_name(self, stems: Sequence[str]) -> str:
        self._fresh += 1
        return f"{self._pick(stems)}{self._fresh}"

    # Blocks.

    def _block(self, block: Block, names: Mapping[str, str]) -> str:
        """`names` renames outputs; the others keep theirs."""
        if isinstance(block, UnionAll):
            branches = [self._select(branch, names) for branch in block.branches]
            return f"{self._space()}{self._words('UNION ALL')} ".join(branches)
        return self._select(block, names)

    def _select(self, select: Select, names: Mapping[str, str]) -> str:
        by_function = self._windows_by_function(select)
        printed = {item.key: self._item(item, by_function) for item in select.all_items}
        scope = self._scope(select, printed, names, "window." if by_function else "window_")
        source, left_over = self._from(select, {key: text for key, (text, _) in printed.items()}, scope)

        clauses = [self._word("SELECT"), self._outputs(select, names, scope)]
        clauses += [self._word("FROM"), source]
        if left_over:
            clauses += [self._word("WHERE"), self._conjunction(left_over)]
        keys = self._shuffled([self._expression(key, scope) for key in select.keys])
        if by_function is not None:
            keys.insert(0 if self.rng is None else self.rng.randint(0, len(keys)), by_function)
        if keys:
            clauses += [self._words("GROUP BY"), ", ".join(keys)]
        if select.having:
            clauses += [
                self._word("HAVING"),
                self._conjunction([self._predicate(p, scope) for p in select.having]),
            ]
        if select.limit is not None:
            order = ", ".join(self._order(key, select, names, scope) for key in select.order)
            clauses += [self._words("ORDER BY"), order, self._word("LIMIT"), str(select.limit)]
        return self._join(*clauses)

    def _scope(
        self,
        select: Select,
        printed: Mapping[str, tuple[str, tuple[str, Mapping[str, str]]]],
        names: Mapping[str, str],
        window: str,
    ) -> Scope:
        columns = [column for item in select.all_items for column in columns_of_item(item)]
        written = {
            (column.item, column.name): printed[column.item][1][1].get(column.name, column.name)
            for column in columns
        }
        used = [name.lower() for name in written.values()]
        outputs = {names.get(output.name, output.name).lower() for output in select.outputs}
        unambiguous = {
            column
            for column, name in written.items()
            if used.count(name.lower()) == 1 and name.lower() not in outputs and self._maybe(0.3)
        }
        aliases = {key: alias for key, (_, (alias, _)) in printed.items()}
        return Scope(aliases, written, frozenset(unambiguous), window)

    def _outputs(self, select: Select, names: Mapping[str, str], scope: Scope) -> str:
        only = select.all_items[0]
        mine = [(scope.names[column.item, column.name], column) for column in columns_of_item(only)]
        wanted = [(names.get(output.name, output.name), output.expression) for output in select.outputs]
        if len(select.all_items) == 1 and mine == wanted and self._maybe():
            return self._pick(("*", f"{scope.aliases[only.key]}.*"))
        texts = []
        for name, expression in wanted:
            text = self._expression(expression, scope)
            if isinstance(expression, Column) and scope.names[expression.item, expression.name] == name:
                texts.append(text)
            else:
                texts.append(
                    self._join(text, self._word("AS"), name) if not self._maybe(0.2) else f"{text} {name}"
                )
        return f",{self._space()}".join(texts)

    def _order(self, key: OrderKey, select: Select, names: Mapping[str, str], scope: Scope) -> str:
        expression = next(output.expression for output in select.outputs if output.name == key.output)
        by_name = names.get(key.output, key.output)
        text = self._expression(expression, scope) if self._maybe(0.3) else by_name
        if key.descending:
            return f"{text} {self._word('DESC')}" + (
                f" {self._words('NULLS LAST')}" if self._maybe(0.3) else ""
            )
        return text + self._pick(("", f" {self._word('ASC')}", f" {self._words('NULLS FIRST')}"))

    # FROM.

    def _from(self, select: Select, texts: Mapping[str, str], scope: Scope) -> tuple[str, list[str]]:
        """The FROM clause and the conditions that are left for WHERE."""
        inner = self._shuffled([item.key for item in select.items])
        conditions = [
            (used, text) for term in select.conditions for used, text in self._conjuncts(term, scope)
        ]
        conditions = self._shuffled(conditions)
        movable = frozenset(inner) if all(step.kind == "LEFT" for step in select.outer) else frozenset[str]()
        if not select.outer and (self.rng is None or self._maybe()):
            return f",{self._space()}".join(texts[key] for key in inner), [text for _, text in conditions]

        clause, left_over = texts[inner[0]], list[str]()
        placed: dict[int, list[str]] = {position: [] for position in range(1, len(inner))}
        for used, text in conditions:
            first = max((inner.index(key) for key in used if key in inner), default=0)
            if used <= movable and len(inner) > 1 and (self.rng is None or self._maybe(0.7)):
                first = max(1, first)
                placed[first if self.rng is None else self.rng.randint(first, len(inner) - 1)].append(text)
            else:
                left_over.append(text)
        for position, on in placed.items():
            keyword = self._word("JOIN") if not self._maybe(0.2) else self._words("INNER JOIN")
            if on:
                clause = self._join(
                    clause, keyword, texts[inner[position]], self._word("ON"), self._conjunction(on)
                )
            else:
                clause = self._join(clause, self._words("CROSS JOIN"), texts[inner[position]])
        for step in select.outer:
            keyword = (
                self._word(step.kind) + self._pick(("", f" {self._word('OUTER')}")) + f" {self._word('JOIN')}"
            )
            on = self._shuffled([text for term in step.on for _, text in self._conjuncts(term, scope)])
            clause = self._join(
                clause, keyword, texts[step.item.key], self._word("ON"), self._conjunction(on)
            )
        return clause, left_over

    def _item(self, item: Item, by_function: str | None) -> tuple[str, tuple[str, Mapping[str, str]]]:
        """The item's text, its alias, and the printed names of its columns where they differ."""
        match item:
            case RelationItem(key, relation, window):
                alias = key if self.rng is None else self._fresh_name(ALIASES)
                if by_function is not None:
                    return f"{self._name(relation.name)} {self._alias(alias)}", (alias, {})
                function = self._table_function(relation, window)
                if function is not None:
                    return f"{function} {self._alias(alias)}", (alias, {})
                return self._with_window(self._name(relation.name), alias, window), (alias, {})
            case BlockItem(key, block, window, query):
                alias = key if self.rng is None else self._fresh_name(ALIASES)
                if query is not None:
                    return self._with_window(self._name(query), alias, window), (alias, {})
                names = {}
                if self.rng is not None and self._maybe():
                    names = {output.name: self._fresh_name(("c", "val_", "k")) for output in block.outputs}
                text = self._block(block, names)
                if self._maybe():
                    cte = self._fresh_name(("part_", "step_", "sub"))
                    self._with.append((cte, text))
                    return self._with_window(cte, alias, window), (alias, names)
                return self._with_window(f"({text})", alias, window), (alias, names)
            case _:
                assert_never(item)

    def _alias(self, alias: str) -> str:
        return f"{self._word('AS')} {alias}" if not self._maybe() else alias

    def _with_window(self, relation: str, alias: str, window: Window | None) -> str:
        if window is None:
            return f"{relation} {self._alias(alias)}"
        text = self._window(window)
        if self._maybe():
            return self._join(relation, text, self._alias(alias))
        return self._join(relation, self._alias(alias), text)

    # Windows.

    def _window(self, window: Window) -> str:
        match window:
            case InstantWindow(range_s):
                return f"[{self._word('RANGE')} {self._duration(range_s)}]"
            case TickWindow(range_s, slide_s, _):
                text = f"{self._word('RANGE')} {self._duration(range_s)}"
                if range_s == slide_s and self._maybe():
                    return f"[{text}]"
                return f"[{text} {self._word('SLIDE')} {self._duration(slide_s)}]"
            case RowWindow(rows, slide_rows, partition):
                text = f"{self._word('ROWS')} {rows}"
                if rows != slide_rows or not self._maybe():
                    text += f" {self._word('SLIDE')} {slide_rows}"
                columns = ", ".join(self._name(column) for column in self._shuffled(partition))
                return f"[{self._words('PARTITION BY')} {columns} {text}]" if partition else f"[{text}]"
            case _:
                assert_never(window)

    def _table_function(self, relation: Relation, window: Window | None) -> str | None:
        """HOP or TUMBLE, where the window needs it or chance wants it."""
        if not isinstance(window, TickWindow) or relation.event_time is None:
            return None
        if window.offset_s == 0 and not self._maybe(0.3):
            return None
        table = f"{self._word('TABLE')} {self._name(relation.name)}"
        descriptor = f"{self._word('DESCRIPTOR')}({self._name(relation.event_time)})"
        sizes = [self._interval(window.range_s)]
        if window.range_s != window.slide_s or self._maybe():
            sizes.insert(0, self._interval(window.slide_s))
        start = _start_offset_s(window)
        if start:
            sizes.append(self._interval(start))
        function = "TUMBLE" if window.range_s == window.slide_s and len(sizes) == 1 + bool(start) else "HOP"
        return f"{self._word(function)}({', '.join([table, descriptor, *sizes])})"

    def _windows_by_function(self, select: Select) -> str | None:
        """`window(…)` for GROUP BY, where one stream is aggregated and chance wants it."""
        item = select.items[0]
        if len(select.all_items) > 1 or not select.aggregates or not isinstance(item, RelationItem):
            return None
        if (
            not isinstance(item.window, TickWindow)
            or item.window.range_s < item.window.slide_s  # window() knows no gaps
            or item.relation.event_time is None
            or not self._maybe(0.3)
        ):
            return None
        window, arguments = item.window, [self._name(item.relation.event_time)]
        arguments.append(f"'{self._duration(window.range_s)}'")
        start = _start_offset_s(window)
        if window.range_s != window.slide_s or start or self._maybe():
            arguments.append(f"'{self._duration(window.slide_s)}'")
        if start:
            arguments.append(f"'{self._duration(start)}'")
        return f"{self._pick(('window', 'WINDOW'))}({', '.join(arguments)})"

    def _duration(self, seconds: int) -> str:
        options = [f"{seconds} SECONDS" if seconds != 1 else "1 SECOND"]
        if seconds % 60 == 0:
            minutes = seconds // 60
            options.insert(0, f"{minutes} MINUTES" if minutes != 1 else "1 MINUTE")
        text = self._pick(options)
        return text.lower() if self._maybe(0.3) else text

    def _interval(self, seconds: int) -> str:
        amount, unit = self._duration(seconds).split()
        return self._pick(
            (f"INTERVAL {amount} {unit}", f"INTERVAL '{amount}' {unit}", f"INTERVAL '{amount} {unit}'")
        )

    # Predicates.

    def _conjunction(self, terms: Sequence[str]) -> str:
        terms = list(terms)
        if self._maybe(0.05):
            terms.append(self._pick((terms[0], self._word("TRUE"))))
        return f"{self._space()}{self._word('AND')} ".join(self._parenthesised(term) for term in terms)

    def _conjuncts(self, predicate: Predicate, scope: Scope) -> list[tuple[frozenset[str], str]]:
        """The comparisons that say it, each with the items it reads."""
        match predicate:
            case AllOf(terms):
                return [part for term in terms for part in self._conjuncts(term, scope)]
            case Equality(members):
                return [
                    (items_used(left) | items_used(right), self._comparison("=", left, right, scope))
                    for left, right in self._pairs(members)
                ]
            case _:
                return [(items_used(predicate), self._predicate(predicate, scope))]

    def _pairs(
        self, members: Sequence[Column | Constant]
    ) -> list[tuple[Column | Constant, Column | Constant]]:
        """Edges of a random tree over the members, sometimes with one more that is implied."""
        order = self._shuffled(members)
        pairs = [
            (order[0 if self.rng is None else self.rng.randrange(index)], order[index])
            for index in range(1, len(order))
        ]
        if len(order) > 2 and self._maybe(0.2) and self.rng is not None:
            left, right = self.rng.sample(order, 2)
            pairs.append((left, right))
        return pairs

    def _predicate(self, predicate: Predicate, scope: Scope) -> str:
        """A term that can stand beside AND; disjunctions bring their parentheses."""
        match predicate:
            case Comparison(operator, left, right):
                return self._comparison(operator, left, right, scope)
            case Equality() | AllOf():
                texts = [text for _, text in self._conjuncts(predicate, scope)]
                return texts[0] if len(texts) == 1 else f"({self._conjunction(self._shuffled(texts))})"
            case AnyOf(terms):
                texts = [self._predicate(term, scope) for term in self._shuffled(terms)]
                separator = f"{self._space()}{self._word('OR')} "
                return f"({separator.join(texts)})"
            case Between(value, low, high):
                bounds = f"{low.sql} {self._word('AND')} {high.sql}"
                return f"{self._expression(value, scope)} {self._word('BETWEEN')} {bounds}"
            case Among(value, constants):
                texts = [constant.sql for constant in self._shuffled(constants)]
                return f"{self._expression(value, scope)} {self._word('IN')} ({', '.join(texts)})"
            case IsNull(value):
                return f"{self._expression(value, scope)} {self._words('IS NULL')}"
            case Like(value, pattern):
                return f"{self._expression(value, scope)} {self._word('LIKE')} {pattern.sql}"
            case Negation(IsNull(value)) if self._maybe(0.7) or self.rng is None:
                return f"{self._expression(value, scope)} {self._words('IS NOT NULL')}"
            case Negation(Among(value, constants)) if self._maybe():
                texts = [constant.sql for constant in self._shuffled(constants)]
                return f"{self._expression(value, scope)} {self._words('NOT IN')} ({', '.join(texts)})"
            case Negation(term):
                return f"{self._word('NOT')} ({self._predicate(term, scope)})"
            case _:
                assert_never(predicate)

    def _comparison(self, operator: str, left: Expression, right: Expression, scope: Scope) -> str:
        if self._maybe(0.3):
            left, right, operator = right, left, FLIPPED[operator]
        if operator == "<>":
            operator = self._pick(("<>", "!="))
        return f"{self._expression(left, scope)} {operator} {self._expression(right, scope)}"

    def _parenthesised(self, text: str) -> str:
        return f"({text})" if self._maybe(0.1) else text

    # Expressions.

    def _expression(self, expression: Expression, scope: Scope) -> str:
        match expression:
            case Column(item, name, _):
                written = self._name(scope.names[item, name])
                if (item, name) in scope.unqualified:
                    return written
                return f"{scope.aliases[item]}.{written}"
            case Constant(sql, _):
                return sql
            case WindowEdge(edge, _):
                return f"{scope.window}{edge}"
            case Apply(function, arguments, _):
                return self._parenthesised(
                    self._apply(function, [self._expression(a, scope) for a in arguments])
                )
            case Case(branches, otherwise, _):
                texts = [self._word("CASE")]
                for condition, value in branches:
                    texts += [self._word("WHEN"), self._predicate(condition, scope)]
                    texts += [self._word("THEN"), self._expression(value, scope)]
                if otherwise is not None:
                    texts += [self._word("ELSE"), self._expression(otherwise, scope)]
                return self._join(*texts, self._word("END"))
            case Aggregation(function, argument, _, filter_):
                text = self._aggregation(
                    function, None if argument is None else self._expression(argument, scope)
                )
                if filter_ is not None:
                    text += (
                        f" {self._word('FILTER')} ({self._word('WHERE')} {self._predicate(filter_, scope)})"
                    )
                return text
            case _:
                assert_never(expression)

    def _apply(self, function: str, arguments: Sequence[str]) -> str:
        if function == "||" and self._maybe():
            return f"{self._word('CONCAT')}({', '.join(arguments)})"
        if function in INFIX:
            operator = f" {function} "
            return f"({operator.join(arguments)})"
        if function.startswith("cast "):
            return f"{self._word('CAST')}({arguments[0]} {self._word('AS')} {function.removeprefix('cast ')})"
        name = self._pick(SYNONYMS.get(function, (function,)))
        return f"{name.upper() if self._maybe(0.2) else name}({', '.join(arguments)})"

    def _aggregation(self, function: str, argument: str | None) -> str:
        name = self._pick(SYNONYMS.get(function, (function,)))
        if argument is None:
            return f"{name}({self._pick(('*', '1')) if self.rng is not None else '*'})"
        if name == "count_distinct":
            return f"{self._word('COUNT')}({self._word('DISTINCT')} {argument})"
        return f"{name.upper() if self._maybe(0.2) else name}({argument})"


def print_relation(relation: Relation) -> str:
    """The `CREATE STREAM` or `CREATE TABLE` of a relation."""
    columns = [f"{name} {type_}" for name, type_ in relation.columns]
    if relation.event_time is None:
        return f"CREATE TABLE {relation.name} ({', '.join(columns)});"
    columns.append(
        f"WATERMARK FOR {relation.event_time} AS {relation.event_time} - INTERVAL {relation.delay_s} SECONDS"
    )
    return f"CREATE STREAM {relation.name} ({', '.join(columns)}) WITH (rate = 10);"


def _start_offset_s(window: TickWindow) -> int:
    """HOP and window() count from the windows' starts: the offset that puts the ends where they belong."""
    return (window.offset_s - window.range_s) % window.slide_s
