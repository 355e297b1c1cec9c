"""The `WITH (key = value, …)` options of a statement, read by the rules for its kind.

Decides which options go together. Which keys there are and how their values read is in `option_rules`.

`${NAME}` in a value stands for a variable of the environment. Such a value is a `Secret`, whose text appears
nowhere but where it is used; options that shape a plan, and so show in it, cannot be given that way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from plait.catalog import PASSED_ON, OptionValue, Secret
from plait.errors import PlaitError, Span, UserError, closest
from plait.language.limits import clip
from plait.language.option_rules import NAME, OptionRule, OptionRules
from plait.language.quantities import QuantityError

MAX_PASSED_ON_LENGTH = 200

_VARIABLE = re.compile(r"\$\{([^}]*)\}?")
_PASSED_ON_NAME = re.compile(r"[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*")


@dataclass(frozen=True)
class WrittenOption:
    """An option as it stands in the text: the value is a string's content, a number or a word."""

    key: str
    key_span: Span
    text: str
    is_string: bool
    span: Span


@dataclass(frozen=True)
class Option:
    """An option read: the key in lower case, except for the NAME of `option.NAME`. `span` is the value's."""

    key: str
    value: OptionValue
    span: Span
    key_span: Span


def read_options(
    rules: OptionRules, written: Sequence[WrittenOption], environment: Mapping[str, str] | None = None
) -> tuple[tuple[Option, ...], list[PlaitError]]:
    """All options that can be read, and an error for each that cannot."""
    variables = os.environ if environment is None else environment
    chosen = _chosen(rules, written)
    given: set[str] = set()
    options: dict[str, Option] = {}
    errors: list[PlaitError] = []
    for item in written:
        key = item.key.lower()
        try:
            if key in given:
                raise UserError(
                    "duplicate-option", f"`{clip(key)}` is given twice", hint="keep one", span=item.key_span
                )
            given.add(key)
            rule = _rule(rules, chosen, item)
            if rule is not None:
                kept = PASSED_ON + item.key[len(PASSED_ON) :] if key.startswith(PASSED_ON) else key
                options[kept] = Option(kept, _read_value(rule, item, variables), item.span, item.key_span)
        except UserError as error:
            errors.append(error)
    errors += _missing(rules, chosen, options, given)
    errors += _conflicts(options)
    return tuple(options.values()), errors


def _chosen(rules: OptionRules, written: Iterable[WrittenOption]) -> str | None:
    """The connector or sink; None if what is given is none."""
    for item in written:
        if item.key.lower() == rules.chooser:
            (rule,) = (rule for rule in rules.rules if rule.key == rules.chooser)
            try:
                return str(rule.read(item.text))
            except QuantityError:
                return None
    return rules.default


def _rule(rules: OptionRules, chosen: str | None, item: WrittenOption) -> OptionRule | None:
    """How to read an option; None if that depends on a connector or sink that is complained of already."""
    key = item.key.lower()
    prefix, _, name = key.partition(".")
    found = [
        rule for rule in rules.rules if (rule.key.startswith(f"{prefix}.<") if name else rule.key == key)
    ]
    if not found or (key.startswith(PASSED_ON) and not _is_passed_on(name)):
        known = list(dict.fromkeys(rule.key for rule in rules.rules))
        suggestion = closest(key, known)
        hint = (
            suggestion if suggestion.startswith("did") else f"there is {', '.join(f'`{k}`' for k in known)}"
        )
        raise UserError(
            "unknown-option", f"there is no option `{clip(key)}` here", hint=hint, span=item.key_span
        )
    fitting = [rule for rule in found if not rule.of or chosen in rule.of]
    if not fitting and chosen is not None:
        raise _misplaced(rules, chosen, found, item)
    return fitting[0] if fitting else None


def _is_passed_on(name: str) -> bool:
    return len(name) <= MAX_PASSED_ON_LENGTH and _PASSED_ON_NAME.fullmatch(name) is not None


def _misplaced(
    rules: OptionRules, chosen: str, found: Iterable[OptionRule], item: WrittenOption
) -> UserError:
    """An option of another connector or sink."""
    places = [f"'{place}'" for rule in found for place in rule.of]
    key = clip(item.key.lower())
    if chosen:
        message = f"`{key}` is an option of {rules.chooser} {' and '.join(places)}, not of '{chosen}'"
    else:
        message = f"`{key}` is an option of a {rules.chooser}, and none is given"
    hint = f"add {rules.chooser} = {places[0]}" if chosen == rules.default else f"leave `{key}` out"
    return UserError("option-conflict", message, hint=hint, span=item.key_span)


def _read_value(rule: OptionRule, item: WrittenOption, environment: Mapping[str, str]) -> OptionValue:
    if not (item.is_string and "${" in item.text):
        try:
            return rule.read(item.text)
        except QuantityError as error:
            raise UserError(
                "option-value",
                f"`{item.key}`: {error.message}",
                detail=f"{rule.key}: {rule.documentation}, such as {rule.example}",
                hint=error.hint,
                span=item.span,
            ) from None
    if not rule.may_be_secret:
        raise UserError(
            "option-not-secret",
            f"`{item.key}` cannot come from the environment, because plans show it",
            hint=f"write the value, such as {rule.example}",
            span=item.span,
        )
    secret = Secret(item.text, _VARIABLE.sub(lambda found: _variable(found, item, environment), item.text))
    try:
        rule.read(secret.reveal())
    except QuantityError:
        # The reason could quote the value.
        raise UserError(
            "option-value",
            f"`{item.key}`: what `{clip(item.text)}` stands for cannot be used",
            hint=f"it must read like {rule.example}, without `..`",
            span=item.span,
        ) from None
    return secret


def secret(template: str, environment: Mapping[str, str]) -> Secret:
    """A secret again whose template was read before."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise _unset(found[1])
        return environment[found[1]]

    return Secret(template, _VARIABLE.sub(value, template))


def _variable(found: re.Match[str], item: WrittenOption, environment: Mapping[str, str]) -> str:
    name = found[1]
    if not found[0].endswith("}") or not NAME.fullmatch(name):
        raise UserError(
            "option-variable",
            f"`{clip(found[0])}` names no variable",
            hint="for example ${NAME}",
            span=item.span,
        )
    if name not in environment:
        raise _unset(name).at(item.span)
    return environment[name]


def _unset(name: str) -> UserError:
    return UserError(
        "unset-variable",
        f"the variable {name} is not set in the environment",
        hint=f"export {name}=… before you start plait",
    )


def _missing(
    rules: OptionRules, chosen: str | None, options: Mapping[str, Option], given: Set[str]
) -> Iterator[PlaitError]:
    """Options that the connector or sink needs. One that is given and in error is complained of already."""
    for rule in rules.rules:
        if rule.is_needed and chosen in rule.of and rule.key not in given:
            yield UserError(
                "option-conflict",
                f"{rules.chooser} '{chosen}' needs a `{rule.key}`",
                hint=f"add {rule.key} = {rule.example}",
                span=options[rules.chooser].key_span,
            )


def _conflicts(options: Mapping[str, Option]) -> list[PlaitError]:
    """Options that exclude each other."""
    errors: list[PlaitError] = []

    def complain(key: str, message: str, hint: str) -> None:
        errors.append(UserError("option-conflict", message, hint=hint, span=options[key].key_span))

    if "format" in options and options["format"].value != "csv":
        for key in ("header", "delimiter"):
            if key in options:
                complain(key, f"`{key}` is an option of format 'csv'", f"leave `{key}` out")
    if "bandwidth" in options:
        for key in ("in_bandwidth", "out_bandwidth"):
            if key in options:
                complain(key, f"`bandwidth` already gives `{key}`", "keep `bandwidth`, or both others")
    if "start" in options and "end" in options:
        start, end = str(options["start"].value), str(options["end"].value)
        if start[0].isdigit() and end <= start:  # times are written so that they sort
            complain("end", f"the stream would end at {end}, not after its start", "give a later `end`")
    return errors
