"""JIT104: a bound method is jitted once, at the end of `__init__`, and kept on the object; or beside a module-level object.

A jitted bound method keeps the object as it was at its first trace, so both assume that what the method reads stays.
"""

from __future__ import annotations

import ast

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import method_kind
from flake8_jitcache.facts.places import class_of, functions_around
from flake8_jitcache.facts.scopes import DEFINITIONS, Definition
from flake8_jitcache.facts.stays import assigned_later
from flake8_jitcache.fix import naming
from flake8_jitcache.fix.calls import sites_without_arguments
from flake8_jitcache.fix.document import Document
from flake8_jitcache.fix.edits import Edit
from flake8_jitcache.fix.effects import effects
from flake8_jitcache.fix.fixes import Fix, Task
from flake8_jitcache.fix.jit_options import check_options, options_of
from flake8_jitcache.fix.refusal import Refused
from flake8_jitcache.fix.replacing import existing, take_out, with_comments
from flake8_jitcache.fix.stable_names import is_constant


def plan(task: Task) -> Fix:
    """Jit a bound method once."""
    document, creation = task.document, task.lifetime.creation
    call, target = creation.node, creation.target
    if not isinstance(call, ast.Call) or not isinstance(target, ast.Attribute):
        raise Refused("which method is jitted is not certain")
    check_options(document, creation)
    receiver = target.value
    if not isinstance(receiver, ast.Name):
        raise Refused(f"the object `{ast.unparse(receiver)}` is not a plain name")
    owner = document.module.definitions.class_behind(receiver)
    method = None if owner is None else document.module.definitions.method(owner, target.attr)
    if owner is None or method is None:
        raise Refused(f"the class of `{receiver.id}` can't be seen")
    if method_kind(method, document.module.names) != "instance":
        raise Refused(f"`{target.attr}` is no method of an instance")
    _check_stays(document, owner, method)
    around = effects(document.module, [method])
    if around.changing:
        raise Refused(f"`{method.name}` reads the global `{min(around.changing)}`, which changes")
    assumed = [*around.assumptions, f"what `{method.name}` reads on the object stays as `__init__` sets it"]
    if document.owner(receiver) is document.source.module:
        return _at_module_level(task, call, target, assumed)
    bindings = document.source.reaching(receiver)
    if len(bindings) == 1 and bindings[0].kind == "parameter":
        function = bindings[0].scope.node
        if not isinstance(function, DEFINITIONS) or class_of(document.source, function) is None:
            raise Refused(f"`{receiver.id}` is another object on each call")
        if functions_around(document.source, call)[0] is not function:
            raise Refused("it is jitted in a function inside the method")
        return _in_init(task, call, target, owner, assumed)
    raise Refused(f"the object `{receiver.id}` is made on each call")


def _check_stays(document: Document, owner: ast.ClassDef, method: Definition) -> None:
    """Whether the file leaves alone what a method reads on its object, once `__init__` is done. Raises Refused."""
    other = assigned_later(document.module, owner, method)
    if other is not None:
        raise Refused(f"`{method.name}` reads `self.{other.attr}`, which line {other.lineno} assigns")


def _at_module_level(task: Task, call: ast.Call, target: ast.Attribute, assumed: list[str]) -> Fix:
    """`_jitted_project = jax.jit(CAMERA.project)` beside the object."""
    document = task.document
    assert isinstance(target.value, ast.Name)
    if not is_constant(document.module, target.value.id):
        raise Refused(f"the global `{target.value.id}` changes")
    text = document.segment(call)
    known_name = existing(document, call, text)
    name = known_name or naming.choose(document, [f"jitted_{target.attr.strip('_')}"], task.taken)
    sites = sites_without_arguments(document, call)
    edits, own, behind = take_out(document, call, [document.span(call)], [], sites, name)
    gap = document.gap_for(document.top_statement(call), document.names_in(call))
    if known_name is None:
        edits.append(gap.insert(with_comments(document, f"{name} = {text}", own, behind)))
    return Fix(edits, assumed, defines=text)


def _in_init(task: Task, call: ast.Call, target: ast.Attribute, owner: ast.ClassDef, assumed: list[str]) -> Fix:
    """`self._jitted_step = jax.jit(self.step)` at the end of `__init__`."""
    document = task.document
    init = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    bases = document.module.definitions.bases(owner)
    if owner.decorator_list or bases & known.STABLE_BASES:
        raise Refused(f"`{owner.name}` may not take new attributes")
    if any("__slots__" in {t.id for t in getattr(s, "targets", []) if isinstance(t, ast.Name)} for s in owner.body):
        raise Refused(f"`{owner.name}` has `__slots__`")
    if init is None:
        raise Refused(f"`{owner.name}` has no `__init__` of its own")
    receiver = init.args.args[0].arg if init.args.args else ""
    if not receiver or any(isinstance(n, ast.Return) for n in ast.walk(init)) or init.decorator_list:
        raise Refused("where `__init__` ends is not certain")
    last = init.body[-1]
    if init.body[0].lineno == init.lineno or not document.stands_alone(last):
        raise Refused("`__init__` is written in one line")
    for keyword in options_of(task.lifetime.creation):
        if any(document.owner(name) not in (None, document.source.module) for name in document.names_in(keyword.value)):
            raise Refused(f"the option `{keyword.arg}` reads a local")
    attribute = naming.choose(document, [f"jitted_{target.attr.strip('_')}"], task.taken)
    while attribute in document.source.attributes:
        attribute = naming.choose(document, [attribute], task.taken)
    assert isinstance(target.value, ast.Name)
    sites = sites_without_arguments(document, call)
    edits, own, behind = take_out(document, call, [document.span(call)], [], sites, f"{target.value.id}.{attribute}")
    start, end = document.span(target.value)
    first, stop = document.span(call)
    made = document.text[first:start] + receiver + document.text[end:stop]
    line = with_comments(document, f"{receiver}.{attribute} = {made}", own, behind)
    assert last.end_lineno is not None
    end = last.end_lineno
    while _is_comment_of(document, end + 1, document.indentation(last.lineno)):
        end += 1
    at = document.positions.line_start(end + 1)
    ended = document.positions.line(end).endswith(("\n", "\r"))
    indentation = document.indentation(last.lineno)
    text = document.newline.join(indentation + part for part in line.split(document.newline))
    text = f"{text}{document.newline}" if ended else f"{document.newline}{text}"
    return Fix([*edits, Edit(at, at, text)], assumed)


def _is_comment_of(document: Document, line: int, indentation: str) -> bool:
    """Whether a line is a comment that belongs to a block of this indentation."""
    text = document.positions.line(line) if line <= len(document.positions.starts) else ""
    return text.strip().startswith("#") and document.indentation(line).startswith(indentation)
