"""Refuses an argument of another type than its annotation, and names it, before anything is read, signed or sent."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import httpx
from eth_utils.address import is_address
from typing_extensions import Unpack

from .errors import ValidationError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

_PLAIN: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    int: ((int,), "an int"),
    float: ((int, float), "a number"),
    bool: ((bool,), "True or False"),
    type(None): ((type(None),), "None"),
}


@dataclass(frozen=True)
class Form:
    """What an annotated type looks like, for errors, and what its values have to be besides."""

    expected: str
    fits: Callable[[Any], bool] = lambda value: True


def _is_url(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and url.host != ""


Address = Annotated[str, Form("an address: 0x and 40 hex digits, with a valid checksum if it has one", is_address)]
Url = Annotated[str, Form("a URL such as 'https://api.example'", _is_url)]


def checks_arguments(created: C) -> C:
    """Makes the constructor and every public method of a class, inherited ones too, check their arguments."""
    for name in dir(created):
        method = inspect.getattr_static(created, name)
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(created, name, checked(method))
    return created


def checked(function: F) -> F:
    """Makes a function check its arguments. Raises ValidationError."""
    signature = inspect.signature(function)

    @functools.cache
    def hints() -> dict[str, Any]:
        given = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
        scope = inspect.unwrap(function).__globals__
        return get_type_hints(types.SimpleNamespace(__annotations__=given), globalns=scope, include_extras=True)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in hints():
                _check(name, value, hints()[name], signature.parameters[name].kind)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def check_fields(record: Any) -> None:
    """Checks the fields of a dataclass by their annotations. Raises ValidationError."""
    hints = get_type_hints(type(record), include_extras=True)
    for each in fields(record):
        _check(each.name, getattr(record, each.name), hints[each.name])


def json_of(value: Any, name: str) -> Any:
    """Returns a value as JSON has it. Raises ValidationError that names what JSON has not, such as a numpy integer."""
    if isinstance(value, Mapping):
        return {key: json_of(inner, f"{name}[{key!r}]") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(inner, f"{name}[{index}]") for index, inner in enumerate(value)]
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise _refusal(name, value, "text, an int, a list or a mapping")


def _check(name: str, value: Any, hint: Any, kind: Any = None) -> None:
    if kind is inspect.Parameter.VAR_KEYWORD:
        # `**schedule: Unpack[Schedule]` names the type of each, `**query: Query` the type of all.
        named = get_type_hints(get_args(hint)[0], include_extras=True) if get_origin(hint) is Unpack else None
        for key, inner in value.items():
            if named is not None and key not in named:
                others = ", ".join(named)
                raise ValidationError("INVALID_REQUEST", f"{key} is no argument; pass one of {others}.")
            _check(key, inner, hint if named is None else named[key])
        return
    problem = _problem(name, value, hint)
    if problem is not None:
        raise problem


def _problem(name: str, value: Any, hint: Any) -> ValidationError | None:
    """Returns what is wrong with a value, by the innermost name such as `exits[0]`; None if its type fits."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return None
    if origin is Annotated:
        inner, form = arguments[0], arguments[1]
        if _problem(name, value, inner) is not None:
            return _refusal(name, value, form.expected)
        return None if form.fits(value) else _misspelt(name, form.expected)
    if origin in (Union, types.UnionType):
        problems = [_problem(name, value, member) for member in arguments]
        if None in problems:
            return None
        # A list with a wrong item is a list: what is wrong with the item says more than which types there are.
        deeper = [each for each in problems if each is not None and f"{name}[" in str(each)]
        return deeper[0] if deeper else _refusal(name, value, _expected(hint))
    if origin is Literal:
        refusal = _misspelt(name, _expected(hint)) if isinstance(value, str) else _refusal(name, value, _expected(hint))
        return None if value in arguments else refusal
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        items = [(f"{name}[{key!r}]", inner, arguments[1]) for key, inner in value.items()]
        return next((found for item in items if (found := _problem(*item))), None)
    if origin is not None and issubclass(origin, Sequence) and isinstance(value, Sequence) and not _is_text(value):
        items = [(f"{name}[{index}]", inner, arguments[0]) for index, inner in enumerate(value)]
        return next((found for item in items if (found := _problem(*item))), None)
    return None if _is_plain(value, hint, origin) else _refusal(name, value, _expected(hint))


def _is_plain(value: Any, hint: Any, origin: Any) -> bool:
    if hint in _PLAIN:
        kinds, _ = _PLAIN[hint]
        return isinstance(value, kinds) and (hint is bool or not isinstance(value, bool)) and _is_sendable(value)
    if origin is not None:
        return origin is Callable and callable(value)
    if getattr(hint, "_is_protocol", False):
        return isinstance(value, hint) and is_address(value.address)
    return isinstance(value, hint)


def _is_text(value: Any) -> bool:
    return isinstance(value, str | bytes | bytearray)


def _is_sendable(value: Any) -> bool:
    """Half of an emoji cannot be sent."""
    return not isinstance(value, str) or value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def _refusal(name: str, value: Any, expected: str) -> ValidationError:
    # The value itself stays out of the message: given in a wrong place, it may be a key.
    kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
    given = "None" if value is None else f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
    if not _is_sendable(value):
        given = "text that UTF-8 cannot encode"
    return ValidationError("INVALID_REQUEST", f"{name} is {given}; pass {expected}.")


def _misspelt(name: str, expected: str) -> ValidationError:
    return ValidationError("INVALID_REQUEST", f"{name} is no such text; pass {expected}.")


def _expected(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint][1]
    if origin is Annotated:
        return str(arguments[1].expected)
    if origin in (Union, types.UnionType):
        return " or ".join(_expected(member) for member in arguments if member is not type(None))
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin is Callable:
        return "a function"
    if origin is not None:
        return "a mapping" if issubclass(origin, Mapping) else f"a list ({_expected(arguments[0])} each)"
    if getattr(hint, "_is_protocol", False):
        text = (hint.__doc__ or "").split(".")[0]
        return text[0].lower() + text[1:]
    names = [each.name for each in fields(hint)] if is_dataclass(hint) else []
    return f"{hint.__name__}({', '.join(names)})" if names else f"a {hint.__name__}"
