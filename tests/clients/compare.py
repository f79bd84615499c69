"""Decides whether what a client returned is what the suite expects.

Clients differ in what they make of a reply (a map may come flat, a score as text, an error without its `ERR `), so
an expectation says what must be the same for all of them, and no more.
"""

import zlib


def problem(expected, got):
    """None when `got` is as expected, else a sentence."""
    if _matches(expected, got):
        return None
    return f"expected {expected!r}, got {got!r}"


def _matches(expected, got):
    if isinstance(expected, dict):
        (kind, value), = expected.items()
        return _FORMS[kind](value, got)
    if isinstance(expected, list):
        return isinstance(got, list) and len(expected) == len(got) and all(map(_matches, expected, got))
    if isinstance(expected, int) and not isinstance(expected, bool):
        return got == expected and not isinstance(got, float)
    return got == expected


def _error(text, got):
    if not isinstance(got, dict) or "error" not in got:
        return False
    # Some clients turn the code into the exception's type and keep only the sentence.
    return text in got["error"] or text.partition(" ")[2] in got["error"]


def _exec(value, got):
    """What EXEC returned; some clients raise the first error inside it instead of returning the list."""
    first_error = next(item for item in value if isinstance(item, dict) and "error" in item)
    return _matches(value, got) or _matches(first_error, got)


def _repeat(value, got):
    data = value[0].encode("latin-1") * value[1]
    return got == {"length": len(data), "adler": zlib.adler32(data)}


def _pairs(got):
    """A map, whichever way a client returned it, as sorted pairs; None if it is not a map."""
    if isinstance(got, dict) and "map" in got:
        return sorted(map(tuple, got["map"]))
    if isinstance(got, list) and all(isinstance(item, list) and len(item) == 2 for item in got):
        return sorted(map(tuple, got))
    if isinstance(got, list) and len(got) % 2 == 0:
        return sorted(zip(got[::2], got[1::2]))
    return None


def _number(value, got):
    try:
        return float(got) == value
    except (TypeError, ValueError):
        return False


def _scores(value, got):
    pairs = got if got and isinstance(got[0], list) else list(zip(got[::2], got[1::2]))
    return len(pairs) == len(value) and all(
        name == want and _number(score, number) for (want, score), (name, number) in zip(value, pairs)
    )


_FORMS = {
    "any": lambda value, got: True,
    "between": lambda value, got: isinstance(got, int) and value[0] <= got <= value[1],
    "contains": lambda value, got: isinstance(got, str) and value in got or isinstance(got, dict) and "length" in got,
    "error": _error,
    "exec": _exec,
    "flatmap": lambda value, got: _pairs(got) == sorted(value.items()),
    "map": lambda value, got: _pairs(got) == sorted(value.items()),
    "number": _number,
    "repeat": _repeat,
    "scores": _scores,
    "unordered": lambda value, got: isinstance(got, list) and sorted(got) == sorted(value),
}
