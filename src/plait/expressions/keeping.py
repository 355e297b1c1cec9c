"""Values derived from frozen objects, computed once and kept in them.

What `cached_property` does for a class itself, these do for functions of other modules: the value lies in the
object's dictionary, around the `__setattr__` that frozen objects refuse, and goes when the object does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")
Others = ParamSpec("Others")


def kept(compute: Callable[[Owner], Value]) -> Callable[[Owner], Value]:
    """Decorates a function of one frozen object."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def look_up(owner: Owner) -> Value:
        values = vars(owner)
        result: Value
        try:
            result = values[name]
        except KeyError:
            result = values[name] = compute(owner)
        return result

    return look_up


def kept_for(
    compute: Callable[Concatenate[Owner, Others], Value],
) -> Callable[Concatenate[Owner, Others], Value]:
    """Decorates a function of a frozen object and of others, given by position, of which there are few for
    each object: all values are kept."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def look_up(owner: Owner, /, *others: Others.args, **named: Others.kwargs) -> Value:
        assert not named, name
        values: dict[tuple[object, ...], Value] = vars(owner).setdefault(name, {})
        try:
            return values[others]
        except KeyError:
            result = values[others] = compute(owner, *others, **named)
            return result

    return look_up


def kept_form(compute: Callable[[Owner], Owner]) -> Callable[[Owner], Owner]:
    """Decorates a function that gives an object's normal form, which is also that of the form itself."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def look_up(owner: Owner) -> Owner:
        values = vars(owner)
        form: Owner
        try:
            form = values[name]
        except KeyError:
            form = values[name] = compute(owner)
            vars(form)[name] = form
        return form

    return look_up
