"""Taking code out of a function and putting it at module level, comments and all."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from flake8_jitcache.facts.scopes import DEFINITIONS, Definition, Function
from flake8_jitcache.fix.captures import Capture, read_edits
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit, Span, span, splice
from flake8_jitcache.fix.refusal import Refused


@dataclass
class Moved:
    """A definition for module level: its text, the names that it evaluates at import, and what that assumes."""

    text: str
    needed: list[ast.Name] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)


def function_text(
    document: Document,
    function: Function,
    name: str,
    found: list[Capture],
    decorator: str | None,
    decorator_edits: Iterable[Edit] = (),
) -> Moved:
    """A nested function or lambda as a module-level function `name` that takes what it captured as parameters.
    `decorator` is put above it; a nested function's own decorators stay, changed by `decorator_edits`."""
    moved = Moved("")
    _evaluated(document, function, moved)
    if isinstance(function, ast.Lambda):
        moved.text = _from_lambda(document, function, name, found)
    else:
        moved.text = _from_definition(document, function, name, found, list(decorator_edits))
    if decorator is not None:
        lines = moved.text.split(document.newline)
        at = next(i for i, line in enumerate(lines) if line.startswith(("def ", "@")))
        lines.insert(at, f"@{decorator}")
        moved.text = document.newline.join(lines)
    return moved


def kept_spans(document: Document, function: Function) -> list[Span]:
    """The spans of a function whose text moves along, comments included."""
    if not isinstance(function, ast.Lambda):
        return [definition_lines(document, function)]
    node = document.grammar.node(document.span(function), "lambda")
    return [span(part) for part in (node.field("parameters"), node.field("body")) if part is not None]


def _evaluated(document: Document, function: Function, moved: Moved) -> None:
    """What is evaluated where a function is defined: defaults, annotations, decorators."""
    for default in (*function.args.defaults, *function.args.kw_defaults):
        if default is None:
            continue
        moved.needed += document.names_in(default)
        if isinstance(default, (ast.Name, ast.Attribute)) or all(
            isinstance(n, (ast.Constant, ast.UnaryOp, ast.unaryop, ast.Tuple, ast.expr_context))
            for n in ast.walk(default)
        ):
            continue
        moved.assumptions.append(f"the default `{ast.unparse(default)}` may be evaluated once")
    if isinstance(function, ast.Lambda):
        return
    for decorator in function.decorator_list:
        moved.needed += document.names_in(decorator)
    if getattr(function, "type_params", None):
        raise Refused("it has type parameters of its own")
    if not _annotations_are_text(document.tree):
        annotations = [p.annotation for p in ast.walk(function.args) if isinstance(p, ast.arg)]
        for annotation in (*annotations, function.returns):
            if annotation is not None:
                moved.needed += document.names_in(annotation)


def _annotations_are_text(tree: ast.Module) -> bool:
    return any(
        isinstance(s, ast.ImportFrom) and s.module == "__future__" and any(a.name == "annotations" for a in s.names)
        for s in tree.body
    )


def _from_lambda(document: Document, function: ast.Lambda, name: str, found: list[Capture]) -> str:
    node = document.grammar.node(document.span(function), "lambda")
    parameters, body = node.field("parameters"), node.field("body")
    if body is None:
        raise Refused("ast-grep sees no body in the lambda")
    reads = read_edits(document, found)
    given = ""
    if parameters is not None:
        start, end = span(parameters)
        given = splice(document.text[start:end], [e for e in reads if start <= e.start and e.end <= end], start)
        given = given.rstrip().rstrip(",")
    taken = _parameters(function, found)
    start, end = span(body)
    code = splice(document.text[start:end], [e for e in reads if start <= e.start and e.end <= end], start)
    line = document.text.count("\n", 0, start) + 1
    one, newline = document.indent, document.newline
    if _is_one_expression(code):
        code = reindent(document, code, line, document.indentation(line), one)
    elif "\n" in code:
        code = reindent(document, code, line, document.indentation(line), one * 2)
        code = f"({newline}{one * 2}{code}{newline}{one})"
    else:
        code = f"({code})"
    lines = [f"def {name}({', '.join(filter(None, [given, taken]))}):", f"{document.indent}return {code}"]
    return document.newline.join(lines)


def _is_one_expression(code: str) -> bool:
    """Whether an expression can follow `return` without parentheses around it."""
    try:
        tree = ast.parse(f"return_ = {code}")
    except SyntaxError:
        return False
    return (
        len(tree.body) == 1
        and isinstance(tree.body[0], ast.Assign)
        and not isinstance(tree.body[0].value, ast.NamedExpr)
    )


def _from_definition(
    document: Document, function: Definition, name: str, found: list[Capture], edits: list[Edit]
) -> str:
    start, end = definition_lines(document, function)
    node = document.grammar.definition(document.span(function)[0])
    title, parameters = node.field("name"), node.field("parameters")
    if title is None or parameters is None:
        raise Refused("ast-grep sees no name or parameters in the function")
    edits = [*edits, *read_edits(document, found), Edit(*span(title), name)]
    taken = _parameters(function, found)
    if taken:
        given = [child for child in parameters.children() if child.is_named() and child.kind() != "comment"]
        at = span(given[-1])[1] if given else span(parameters)[0] + 1
        edits.append(Edit(at, at, f", {taken}" if given else taken))
    first = document.text.count("\n", 0, start) + 1
    text = splice(document.text[start:end], edits, start)
    return reindent(document, text, first, document.indentation(function.lineno), "", _docstring(function)).rstrip(
        "\r\n"
    )


def _docstring(function: Definition) -> set[int]:
    """The lines inside a function's docstring, whose indentation is no content."""
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        assert first.end_lineno is not None
        return set(range(first.lineno + 1, first.end_lineno + 1))
    return set()


def reindent(
    document: Document,
    text: str,
    first: int,
    old: str,
    new: str,
    docstring: Iterable[int] = (),
    *,
    whole: bool = False,
) -> str:
    """Move the lines of a text from one indentation to another, but for those that begin inside a string. `first` is
    the number of its first line; a text that does not begin at its line's start keeps it as it is (one that is `whole`
    does)."""
    fixed = document.grammar.lines_in_strings() - set(docstring)
    lines = text.split("\n")
    result = []
    for number, line in enumerate(lines, first):
        if number not in fixed and line.startswith(old) and (number > first or new == "" or whole):
            line = new + line[len(old) :] if line.strip() else line
        result.append(line)
    return "\n".join(result)


def at_margin(document: Document, text: str, node: ast.expr) -> str:
    """The text of an expression, with the lines after its first one indented as at module level. A text that is not the
    document's own line by line is left as it is."""
    if text.count("\n") != document.segment(node).count("\n"):
        return text
    return reindent(document, text, node.lineno, document.indentation(node.lineno), "")


def _parameters(function: Function, found: list[Capture]) -> str:
    """The parameters to add, as they are written behind those that are there. Marks those that need their name."""
    if not found:
        return ""
    arguments = function.args
    if arguments.kwarg is not None:
        raise Refused(f"`**{arguments.kwarg.arg}` leaves no place for more parameters")
    by_name = bool(arguments.vararg or arguments.kwonlyargs)
    for capture in found:
        capture.keyword_only = by_name or bool(arguments.defaults)
    names = ", ".join(capture.parameter for capture in found)
    return f"*, {names}" if arguments.defaults and not by_name else names


def mark_keyword_only(function: Function, found: list[Capture]) -> None:
    """Mark the captures that can be passed by name only."""
    _parameters(function, found)


def definition_lines(document: Document, function: Definition) -> Span:
    """The whole lines of a nested function: with the comments that stand directly above it, its decorators, and
    comments at the end of its body."""
    positions = document.positions
    first = document.first_line(function)
    indentation = document.indentation(first)
    while first > 1:
        above = positions.line(first - 1)
        if not above.strip().startswith("#") or document.indentation(first - 1) != indentation:
            break
        first -= 1
    last = function.end_lineno
    assert last is not None
    following = last + 1
    while following <= len(positions.starts):
        line = positions.line(following)
        deeper = (
            document.indentation(following).startswith(indentation) and document.indentation(following) != indentation
        )
        if line.strip().startswith("#") and deeper:
            last = following
        elif line.strip():
            break
        following += 1
    return positions.line_start(first), positions.line_start(last + 1)


def removal(document: Document, statement: ast.stmt) -> Edit:
    """Take a statement out, with its lines and with the blank lines that only set it apart."""
    positions = document.positions
    if isinstance(statement, DEFINITIONS):
        start, end = definition_lines(document, statement)
    else:
        assert statement.end_lineno is not None
        start = positions.line_start(statement.lineno)
        end = positions.line_start(statement.end_lineno + 1)
    first = document.text.count("\n", 0, start) + 1
    following = document.text.count("\n", 0, end) + 1
    blank_above = first > 1 and not positions.line(first - 1).strip()
    parent = document.source.parents[statement]
    block = getattr(parent, document.source.fields[statement])
    opens = block[0] is statement
    ends = block[-1] is statement  # then the blank lines below set its block apart
    if not ends and (isinstance(statement, DEFINITIONS) or blank_above or opens):
        while following < len(positions.starts) and not positions.line(following).strip():
            end = positions.line_start(following + 1)
            following += 1
    if opens:
        while first > 1 and not positions.line(first - 1).strip():
            first -= 1
            start = positions.line_start(first)
    return Edit(start, end, "")


def comments_lost(document: Document, gone: Span, kept: Iterable[Span]) -> tuple[list[str], str]:
    """The comments in a span that is taken out and not in those that move on: own lines, and the one at its end."""
    lost = [
        node
        for node in document.grammar.comments(gone)
        if not any(start <= span(node)[0] and span(node)[1] <= end for start, end in kept)
    ]
    if not lost:
        return [], ""
    last = lost[-1]
    at_end = not document.text[span(last)[1] : gone[1]].strip()
    own = lost[:-1] if at_end else lost
    # In a file with CRLF line ends, ast-grep's comments end with the CR.
    return [node.text().rstrip() for node in own], last.text().rstrip() if at_end else ""
