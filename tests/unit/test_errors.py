"""One shape for one error and for many, and the exit code of the worst."""

from __future__ import annotations

from plait.errors import ErrorReport, ExternalError, Source, Span, UserError


def test_one_shape_for_one_and_for_many() -> None:
    source = Source("a.sql", "SELECT x")
    placed = UserError("type", "wrong", hint="right", span=Span(source, 7, 8))
    bare = ExternalError("output", "full")
    report = ErrorReport([placed, bare])
    assert report.to_json() == {"errors": [*bare.to_json()["errors"], *placed.to_json()["errors"]]}
    (entry,) = placed.to_json()["errors"]
    assert entry == {
        "kind": "error",
        "code": "type",
        "message": "wrong",
        "detail": "",
        "hint": "right",
        "file": "a.sql",
        "line": 1,
        "column": 8,
        "start": 7,
        "end": 8,
    }
    assert placed.errors == (placed,)


def test_the_worst_error_gives_the_exit_code() -> None:
    wrong, failed = UserError("type", "wrong"), ExternalError("output", "full")
    assert ErrorReport([wrong]).exit_code == wrong.exit_code == 2
    assert ErrorReport([failed, wrong]).exit_code == failed.exit_code == 4
