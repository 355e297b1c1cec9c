"""What a user should know although nothing is wrong: a message, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Notice:
    """`code` is stable, `hint` is something the reader can do."""

    code: str
    message: str
    hint: str = ""

    def render(self) -> str:
        lines = [f"notice[{self.code}]: {self.message}"]
        if self.hint:
            first, *rest = self.hint.splitlines()
            lines += [f"  hint: {first}", *(f"        {line}" for line in rest)]
        return "\n".join(lines)

    def to_json(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "hint": self.hint}
