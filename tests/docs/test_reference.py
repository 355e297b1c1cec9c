"""The language reference names every option, the Makefile tests that are there, and the pictures are those of
today's plans."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import plait
from plait.generators import GENERATORS
from plait.language import option_rules
from plait.planners import PLANNERS

ROOT = Path(__file__).parents[2]
RULES = {
    rule.key
    for statement in (
        option_rules.STREAM_OPTIONS,
        option_rules.TABLE_OPTIONS,
        option_rules.QUERY_OPTIONS,
        option_rules.SITE_OPTIONS,
        option_rules.LINK_OPTIONS,
    )
    for rule in statement.rules
}


def test_the_reference_has_every_option_and_no_other() -> None:
    reference = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[a-z_.<>]+`(?:, )?)+) \|", reference, flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named | {"rows", "latency"} == RULES
    assert "`rows`" in reference
    assert "`latency`" in reference


def test_the_makefile_names_tests_that_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    modules = re.findall(r"-m (tests(?:\.\w+)+)", makefile)
    named = re.findall(r"\btests/[\w/.]+", makefile) + [
        f"{module.replace('.', '/')}.py" for module in modules
    ]
    assert "tests/property" in named
    assert "tests/differential/fuzz.py" in named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_the_reference_has_every_generator_with_its_columns() -> None:
    reference = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    for generator in GENERATORS.values():
        columns = ", ".join(
            f"`{column.name} {column.type}`"
            for column in generator.columns
            if column.name != generator.event_time
        )
        assert f"| `'{generator.name}'` | `{generator.event_time}` | {columns} |" in reference


def test_the_command_line_reference_has_every_planner() -> None:
    reference = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in reference for name in PLANNERS)


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.stem
)
def test_pictures_show_the_plans_of_today(picture: Path) -> None:
    drawn = plait.open(ROOT / "examples" / f"{picture.stem}.sql").plan().to_svg()
    assert picture.read_text(encoding="utf-8") == drawn, "run `make pictures`"


@pytest.mark.parametrize(
    "document", [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))], ids=lambda p: p.name
)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
