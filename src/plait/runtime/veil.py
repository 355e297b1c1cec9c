"""Keeps what came from the environment out of errors: Spark quotes paths and options in its own."""

from __future__ import annotations

from plait.catalog import Secret
from plait.errors import PlaitError
from plait.workload import Workload


class Veil:
    """Knows the secrets of a workload."""

    def __init__(self, workload: Workload) -> None:
        catalog = workload.catalog
        options = [relation.options for relation in (*catalog.streams.values(), *catalog.tables.values())]
        options += [query.sink.options for query in workload.queries.values()]
        found = {value for each in options for value in each.values() if isinstance(value, Secret)}
        # The longest first: one may be part of another.
        self._secrets = sorted(found, key=lambda secret: len(secret.reveal()), reverse=True)

    def over(self, error: PlaitError) -> PlaitError:
        """The error, with the names of secrets in place of what they are."""
        for single in error.errors:
            single.message = self._veiled(single.message)
            single.detail = self._veiled(single.detail)
            single.hint = self._veiled(single.hint)
        return error

    def _veiled(self, text: str) -> str:
        for secret in self._secrets:
            if secret.reveal():
                text = text.replace(secret.reveal(), str(secret))
        return text
