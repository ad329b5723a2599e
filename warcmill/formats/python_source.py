"""The names that a file of Python source imports, by its syntax tree: nothing of it is run. Pure."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator, Sequence

from msgspec import Struct

from warcmill.errors import BadInput

LONGEST = 16 << 20  # bytes of a file
STANDARD = sys.stdlib_module_names | {"__main__", "_typeshed"}  # type checkers have the last, and nothing else
_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


class ImportedName(Struct, frozen=True):
    """A name with dots: `a.b`, or `a.b.c` of `from a.b import c`, which may be a module or not.

    `is_optional`: the file runs without it, or a type checker alone needs it.
    """

    name: str
    line: int
    is_optional: bool


def imported(source: bytes, path: str) -> Iterator[ImportedName]:
    """The imports of a file, but for relative ones and the standard library. BadInput if it is not Python source."""
    if len(source) > LONGEST:
        raise BadInput(path, f"it has more than {LONGEST:,} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escapes, which are not at fault here
            tree = ast.parse(source)
    except SyntaxError as error:
        raise BadInput(path, f"line {error.lineno or 1} is not Python {_PYTHON}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(path, f"it is not Python {_PYTHON}: {str(error) or 'it is nested too deeply'}") from error
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:  # a tree may be deeper than Python calls
        node, is_optional = waiting.pop()
        for name in _names(node):
            if name.partition(".")[0] not in STANDARD:
                yield ImportedName(name, getattr(node, "lineno", 0), is_optional)
        waiting.extend(_below(node, is_optional=is_optional))


_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        yield from (node.module if alias.name == "*" else f"{node.module}.{alias.name}" for alias in node.names)


def _below(node: ast.AST, *, is_optional: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes below one, each with True if an import in it is optional."""
    spared = set(map(id, _spared(node)))
    for child in ast.iter_child_nodes(node):
        yield child, is_optional or id(child) in spared


def _spared(node: ast.AST) -> Sequence[ast.AST]:
    """The nodes below one whose imports may fail: with what is done then, that may fail, too."""
    match node:
        case ast.Try() | ast.TryStar() if any(_is_caught(handler.type) for handler in node.handlers):
            return [*node.body, *node.handlers]
        case ast.With() if any(_is_suppressed(item.context_expr) for item in node.items):
            return node.body
        case ast.If() if _last_name(node.test) == "TYPE_CHECKING":
            return node.body
    return ()


def _is_caught(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(map(_is_caught, kind.elts))
    return kind is None or _last_name(kind) in _CAUGHT


def _is_suppressed(context: ast.expr) -> bool:
    if not isinstance(context, ast.Call) or _last_name(context.func) != "suppress":
        return False
    return any(map(_is_caught, context.args))


def _last_name(node: ast.AST) -> str:
    """`c` of `c` and of `a.b.c`; '' of all else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
