"""Random programs as small trees, and their source text."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

STABLE = {"module", "checkpoint", "jit"}  # targets that JAX's cache finds again when they are jitted anew
MADE_OFTEN = {"each", "attribute", "kept"}  # lifetimes in which each call makes its own


@dataclass(frozen=True)
class Unit:
    """One traced thing: what it is, by what it is jitted, and how long that lives."""

    name: str
    target: str = "module"
    form: str = "jit"
    life: str = "module"
    second: str = "none"  # what the second parameter is: none, default, rate, tree, static
    by_name: bool = False  # static_argnames instead of static_argnums
    inside: str = "none"  # what the body does: none, jit, scan, cond, while, fresh_jit, frame, vmap
    helper: bool = False  # called through a plain function

    @property
    def anew(self) -> bool:
        """Whether what JAX's cache goes by is another object on each call."""
        if self.form == "map" or (self.form == "nnx_jit" and self.life in MADE_OFTEN):
            return True
        return self.life in MADE_OFTEN and self.target not in STABLE


@dataclass(frozen=True)
class Step:
    """One line that calls a unit, with what is around it."""

    unit: int
    x: str = "f3"
    y: str = ""
    keyword: bool = False
    context: str = ""  # x64, precision, disable_jit
    before: str = ""  # clear, collect
    thread: int = 0
    under: str = ""  # grad, vmap, jit, eval_shape, lower
    fails: bool = False
    times: int = 1
    option: str = ""


@dataclass(frozen=True)
class Guard:
    form: str = "all"  # all, named, plain, wrap, mark
    max_traces: int = 1
    per: str = "signature"
    inner: tuple[int, int] | None = None  # the steps under a guard of their own, without a function
    escape: bool = False  # the block ends with an error of the user's


@dataclass(frozen=True)
class Program:
    units: tuple[Unit, ...]
    steps: tuple[Step, ...]
    guard: Guard = field(default_factory=Guard)
    warm: tuple[Step, ...] = ()  # before the guard begins

    @property
    def all_steps(self) -> tuple[Step, ...]:
        return self.warm + self.steps


SECOND = {
    "none": ("",),
    "default": ("", "1.0"),
    "rate": ("0.5", "0.25", "R", "np.float32(0.5)", "1"),
    "tree": ('{"a": F3, "b": F4}', '{"b": F4, "a": F3}', "(F3, F4)", "[F3, F4]", "Pair(F3, F4)",
             'OrderedDict([("a", F3), ("b", F4)])', 'OrderedDict([("b", F4), ("a", F3)])', "(F3, None)", '{"a": 1.0, "b": F4}'),
    "static": ("1", "2", "1.0", "True", '"a"', "(1, 2)", "Equal()", "Equal(3)", "Fresh()", "KEPT_A", "KEPT_B",
               'float("nan")', '(1, float("nan"))', "fresh_function()", "(1, Fresh())", "np.int32(1)"),
}  # fmt: skip
ARRAYS = {"f3": "F3", "f4": "F4", "i3": "I3", "w3": "W3", "n3": "N3", "d3": "D3"}
BATCHED = {"f3": "F23", "f4": "F24", "i3": "I23"}
MAPPED = {"f3": "F13", "f4": "F14", "i3": "I13"}


def random_program(seed: int) -> Program:
    rng = random.Random(seed)
    guard_form = rng.choice(["all", "all", "named", "named", "plain", "wrap", "wrap", "mark"])
    units = tuple(_unit(rng, f"u{i}", guard_form) for i in range(rng.choice([1, 1, 2, 2, 3])))
    steps = tuple(_step(rng, units, guard_form) for _ in range(rng.randint(2, 6)))
    steps = _varied(rng, steps, units)
    max_traces, per = 1, "signature"
    if rng.random() < 0.15:
        max_traces = rng.choice([2, 3])
    if rng.random() < 0.2:
        per = rng.choice(["total", "definition"])
    inner = None
    if guard_form in ("all", "named", "plain") and per == "signature" and len(steps) > 2 and rng.random() < 0.2:
        first = rng.randrange(len(steps) - 1)
        inner = (first, rng.randrange(first, len(steps)))
    escape = guard_form in ("all", "named", "plain") and rng.random() < 0.05
    warm: tuple[Step, ...] = ()
    if guard_form == "all" and rng.random() < 0.2:
        warm = tuple(
            replace(step, context="", before="", thread=0, fails=False) for step in steps if rng.random() < 0.7
        )
        if rng.random() < 0.5:
            max_traces = 0
    return Program(units, steps, Guard(guard_form, max_traces, per, inner, escape), warm)


def _unit(rng: random.Random, name: str, guard_form: str) -> Unit:
    form = rng.choice(
        ["jit"] * 5 + ["decorator", "options", "partial_jit", "pmap", "filter_jit", "nnx_jit", "scan", "map", "fori"]
    )
    target = rng.choice(
        [
            "module",
            "module",
            "lambda",
            "nested",
            "partial",
            "method",
            "object",
            "grad",
            "vmap",
            "value_and_grad",
            "checkpoint",
            "jit",
        ]
    )
    life = rng.choice(["module", "module", "variable", "list", "dict", "each", "each", "attribute", "cached", "kept"])
    second = rng.choice(["none", "none", "default", "rate", "tree", "static", "static"])
    if form in ("decorator", "options", "partial_jit"):
        target = rng.choice(["module", "nested"])
        if target == "module":
            life = "module"
    if target in ("checkpoint", "grad", "value_and_grad", "vmap") and second in ("static", "default"):
        second = "rate"
    if target == "vmap" and second == "tree":
        second = "none"
    if form in ("scan", "map", "fori"):
        second, target = "none", rng.choice(["module", "lambda", "nested", "partial", "method"])
        life = rng.choice(["module", "variable", "each"])
    if form == "pmap":
        target = rng.choice(["module", "lambda", "nested", "partial"])
        second = rng.choice(["none", "static"])
    if form == "filter_jit":
        target = rng.choice(["module", "lambda", "nested", "partial"])
        second = rng.choice(["none", "default", "rate", "tree"])
    if form == "nnx_jit":
        target = rng.choice(["module", "lambda", "nested"])
        second = rng.choice(["none", "static", "rate"])
    if form == "jit" and target == "module" and rng.random() < 0.2:
        life, second = "rewrap", "none"
    if target == "jit" and second == "static":
        second = "none"
    if target == "method" and life in ("each", "attribute", "kept") and second == "static":
        second = "none"
    inside = rng.choice(["none"] * 5 + ["jit", "scan", "cond", "while", "fresh_jit", "frame", "vmap"])
    if target in ("lambda", "grad", "value_and_grad") or form in ("scan", "map", "fori", "pmap", "nnx_jit"):
        inside = "none"
    unit = Unit(name, target, form, life, second, rng.random() < 0.5, inside, rng.random() < 0.3)
    if inside == "frame" and (unit.anew or second == "static"):  # a frame keeps function and arguments alive
        unit = replace(unit, inside="none")
    if guard_form in ("named", "wrap") and (
        life in MADE_OFTEN or life in ("cached", "rewrap") or form in ("scan", "map", "fori")
    ):
        unit = replace(unit, helper=True)
    if life == "rewrap":
        unit = replace(unit, helper=guard_form in ("named", "wrap"))
    return unit


def _step(rng: random.Random, units: tuple[Unit, ...], guard_form: str) -> Step:
    index = rng.randrange(len(units))
    unit = units[index]
    step = Step(
        index, x=rng.choice(["f3", "f3", "f3", "f4", "i3", "w3", "n3", "d3"]), y=rng.choice(SECOND[unit.second])
    )
    if unit.second != "none" and step.y:
        step = replace(step, keyword=rng.random() < 0.3)
    step = replace(step, context=rng.choice([""] * 8 + ["x64", "precision", "precision"]))
    step = replace(step, before=rng.choice([""] * 9 + ["clear", "collect"]))
    if rng.random() < 0.12:
        step = replace(step, thread=rng.choice([1, 1, 3]))
    step = replace(step, under=rng.choice([""] * 7 + ["grad", "vmap", "jit", "eval_shape", "lower"]))
    step = replace(step, fails=rng.random() < 0.06, times=rng.choice([1, 1, 1, 2, 3]))
    if rng.random() < 0.01:
        step = replace(step, context="disable_jit")
    return allowed(step, unit, guard_form, rng.choice(["", "", "keep_unused=True", "inline=True"]))


def allowed(step: Step, unit: Unit, guard_form: str, option: str = "") -> Step:
    """The step without what this unit can't take."""
    if unit.life == "rewrap":
        step = replace(step, option=option)
    if unit.target in ("grad", "value_and_grad", "checkpoint") and step.x == "i3":
        step = replace(step, x="f4")
    if unit.target == "vmap" or unit.form == "pmap":
        step = replace(step, x=step.x if step.x in BATCHED else "f3", keyword=False)
    if unit.form in ("scan", "map", "fori"):
        step = replace(step, x=step.x if step.x in ("f3", "f4") else "f3", under="")
    if step.context == "x64":
        step = replace(step, x=step.x if step.x in ("f3", "f4", "w3") else "f3")
        if unit.second == "rate":
            step = replace(step, y="R")
        if unit.second == "tree" and "1.0" in step.y:
            step = replace(step, y="(F3, F4)")
        if unit.second == "default":
            step = replace(step, context="precision")
    if step.under in ("grad", "vmap", "jit"):
        step = replace(step, x=step.x if step.x in BATCHED and step.x != "i3" else "f3")
        if unit.form in ("pmap", "nnx_jit", "filter_jit") or unit.target in ("vmap", "value_and_grad", "grad"):
            step = replace(step, under="")
    if step.under == "jit" and unit.helper:
        step = replace(step, under="")
    if step.under in ("eval_shape", "lower"):
        if unit.form not in ("jit", "decorator", "options", "partial_jit") or guard_form == "wrap" or unit.helper:
            step = replace(step, under="")
        if unit.second == "static" or step.x in ("n3", "d3"):
            step = replace(step, under="" if step.under == "eval_shape" else step.under)
    if unit.form == "pmap":
        step = replace(step, keyword=False, thread=min(step.thread, 1))
    if step.thread > 1 and (step.under or unit.anew or unit.second == "static"):  # by chance alive at once, or not
        step = replace(step, thread=1)
    if unit.life not in ("module", "variable", "list"):  # what is made on demand may be made twice
        step = replace(step, thread=min(step.thread, 1))
    if step.fails or guard_form == "wrap" or step.context:
        step = replace(step, thread=0)
    return step


def _varied(rng: random.Random, steps: tuple[Step, ...], units: tuple[Unit, ...]) -> tuple[Step, ...]:
    """Often the same step again, with one thing changed: there most of what can go wrong is."""
    out: list[Step] = []
    for step in steps:
        if out and rng.random() < 0.5:
            last = rng.choice(out)
            changed = rng.choice(["x", "y", "keyword", "context", "before", "thread", "under", "option", "nothing"])
            if changed != "nothing":
                last = replace(last, **{changed: getattr(step, changed)}) if step.unit == last.unit else last
            step = allowed(last, units[last.unit], "wrap" if units[last.unit].helper else "all", last.option)
        out.append(step)
    return tuple(out)


# --- source text


MODULE = "test_program"


def source(program: Program, number: int = 0) -> str:
    """The text of the program: a module of tests that is named for the number."""
    text = _source(program)
    return text.replace(f'"{MODULE}.', f'"{MODULE}_{number}.')


def _source(program: Program) -> str:
    lines = [
        "from functools import lru_cache, partial",
        "from collections import OrderedDict",
        "import gc",
        "import sys",
        "",
        "import jax",
        "import jax.numpy as jnp",
        "import numpy as np",
        "import pytest",
        "from counting import *",
        "from jax import lax",
    ]
    if any(unit.form == "filter_jit" for unit in program.units):
        lines.append("import equinox as eqx")
    if any(unit.form == "nnx_jit" for unit in program.units):
        lines.append("from flax import nnx")
    lines += ["", "TABLE, LIST, FRAMES = {}, [], []", ""]
    for unit in program.units:
        lines += ["", *_definitions(unit, program.guard)]
    lines += ["", "", *_drive(program)]
    if program.guard.form != "mark":
        lines += ["", "", "def test_program(assert_traced_once):", "    before()", "    drive(assert_traced_once)"]
    return "\n".join(lines) + "\n"


def _parameters(unit: Unit) -> str:
    return {"none": "x", "default": "x, y=1.0", "rate": "x, y", "tree": "x, y", "static": "x, y"}[unit.second]


def _body(unit: Unit, first: str = "") -> list[str]:
    """The lines of the body, without its head."""
    names = "x, y" if unit.second != "none" else "x"
    name = unit.name
    if unit.form == "scan":
        return [f'ran("{name}", c, x)', "return c + x, None"]
    if unit.form == "fori":
        return [f'ran("{name}", i, c)', "return c * 2"]
    lines = [f'ran("{name}", {names})']
    lines += {
        "none": [],
        "jit": [f"k_{name}(jnp.ones(2, jnp.float32))  # call:k_{name}"],
        "scan": ["lax.scan(lambda c, v: (c + v, None), Z, F3)"],
        "cond": ["lax.cond(jnp.sum(x) > 0, lambda v: v, lambda v: v * 2, F3)"],
        "while": ["lax.while_loop(lambda c: c < 3, lambda c: c + 1, Z)"],
        "fresh_jit": ["jax.jit(lambda v: v * 2)(F3)"],
        "frame": ["FRAMES.append(sys._getframe())"],
        "vmap": ["jax.vmap(lambda v: v * 2)(F3)"],
    }[unit.inside]
    result = "x * 2"
    if unit.second in ("rate", "default"):
        result = "x * y"
    if unit.target in ("grad", "value_and_grad"):
        result = f"jnp.sum({result})"
    return [*lines, f"return {result}"]


def _head(unit: Unit, first: str = "") -> str:
    parameters = {"scan": "c, x", "fori": "i, c"}.get(unit.form, _parameters(unit))
    return f"def {unit.name}({first}{parameters}):  # def:{unit.name}"


def _statics(unit: Unit) -> str:
    if unit.second != "static":
        return ""
    if unit.form == "pmap":
        return ", static_broadcasted_argnums=1"
    number = 1
    return ', static_argnames=("y",)' if unit.by_name else f", static_argnums={number}"


def _definitions(unit: Unit, guard: Guard) -> list[str]:
    name, lines = unit.name, []
    indent = "    "
    body = [indent + line for line in _body(unit)]
    if unit.inside == "jit":
        lines += [
            "@jax.jit",
            f"def k_{name}(v):  # def:k_{name}",
            f'    ran("k_{name}", v)',
            "    return v * 2",
            "",
            "",
        ]
    decorator = {
        "decorator": "@jax.jit" if not _statics(unit) else f"@jax.jit({_statics(unit)[2:]})",
        "options": f"@jax.jit({(_statics(unit) + ', keep_unused=True')[2:]})",
        "partial_jit": f"@partial(jax.jit{_statics(unit)})",
    }.get(unit.form)
    if decorator == "@jax.jit" or decorator is None:
        pass
    elif decorator.startswith("@jax.jit("):  # works with each JAX
        decorator = "@partial(jax.jit, " + decorator[len("@jax.jit(") :]
    if decorator and unit.target == "module":
        lines += [decorator, _head(unit), *body, "", ""]
        return [*lines, f"def make_{name}():", f"    return {name}", "", "", *_life(unit)]
    made: list[str] = []
    if unit.target == "lambda":
        result = {"scan": "(c + x, None)", "fori": "c * 2"}.get(unit.form) or (
            "x * y" if unit.second in ("rate", "default") else "x * 2"
        )
        parameters = {"scan": "c, x", "fori": "i, c"}.get(unit.form, _parameters(unit))
        names = {"scan": "c, x", "fori": "i, c"}.get(unit.form) or ("x, y" if unit.second != "none" else "x")
        target = f'lambda {parameters}: ran("{name}", {names}) and {result}'
    elif unit.target == "nested":
        made = [decorator] if decorator else []
        made += [_head(unit), *body, ""]
        target = name
    elif unit.target == "partial":
        lines += [_head(unit, "k, "), *body, "", ""]
        target = f"partial({name}, 2.0)"
    elif unit.target == "method":
        lines += [
            f"class C_{name}:",
            indent + _head(unit, "self, "),
            *[indent + line for line in body],
            "",
            "",
            f"o_{name} = C_{name}()",
            "",
            "",
        ]
        target = f"o_{name}.{name}"
    elif unit.target == "object":
        lines += [
            f"class C_{name}:",
            indent + _head(unit, "self, ").replace(f"def {name}(", "def __call__("),
            *[indent + line for line in body],
            "",
            "",
        ]
        target = f"C_{name}()"
    else:
        lines += [_head(unit), *body, "", ""]
        target = {
            "module": name,
            "grad": f"jax.grad({name})",
            "value_and_grad": f"jax.value_and_grad({name})",
            "vmap": f"jax.vmap({name}{', in_axes=(0, None)' if unit.second != 'none' else ''})",
            "checkpoint": f"jax.checkpoint({name})",
            "jit": f"jax.jit({name})",
        }[unit.target]
    statics = _statics(unit)
    if unit.target == "partial" and statics and not unit.by_name and unit.form != "pmap":
        pass  # numbers go by the parameters that are left
    jit = {"pmap": "jax.pmap", "filter_jit": "eqx.filter_jit", "nnx_jit": "nnx.jit"}.get(unit.form, "jax.jit")
    if unit.form in ("scan", "map", "fori") or decorator:
        expression = target
    elif unit.life == "rewrap":
        expression = f"jax.jit({target}, **options)"
    else:
        expression = f"{jit}({target}{statics})"
    tag = f"  # def:{name}" if unit.target == "lambda" else ""
    if unit.life == "cached":
        lines.append("@lru_cache")
    lines += [f"def make_{name}({'**options' if unit.life == 'rewrap' else ''}):"]
    lines += [indent + line if line else line for line in made]
    return [*lines, f"    return {expression}{tag}", "", "", *_life(unit)]


def _life(unit: Unit) -> list[str]:
    name, lines = unit.name, []
    if unit.life in ("module",):
        lines += [f"j_{name} = make_{name}()", ""]
    if unit.life == "list":
        lines += [f"LIST_{name} = [make_{name}()]", ""]
    if unit.life == "attribute":
        lines += [f"class A_{name}:", "    def __init__(self):", f"        self.call = make_{name}()", "", ""]
    if unit.life == "dict":
        lines += [
            f"def get_{name}():",
            f'    if "{name}" not in TABLE:',
            f'        TABLE["{name}"] = make_{name}()',
            f'    return TABLE["{name}"]',
            "",
            "",
        ]
    if unit.life == "variable":
        lines += [f"v_{name} = make_{name}()", ""]
    if unit.helper:
        call = _loop(unit, _access(unit), "*args, **kwargs")
        lines += ["", f"def h_{name}(*args, **kwargs):", f"    return {call}  # call:h_{name}", "", ""]
    return lines


def _access(unit: Unit, option: str = "") -> str:
    name = unit.name
    return {
        "module": f"j_{name}",
        "variable": f"v_{name}",
        "list": f"LIST_{name}[0]",
        "dict": f"get_{name}()",
        "each": f"make_{name}()",
        "cached": f"make_{name}()",
        "attribute": f"A_{name}().call",
        "kept": f"keep(make_{name}())",
        "rewrap": f"make_{name}({option})" if not unit.helper else f"make_{name}(**kwargs.pop('options', {{}}))",
    }[unit.life]


def _loop(unit: Unit, function: str, arguments: str) -> str:
    if unit.form == "scan":
        return f"lax.scan({function}, Z, {arguments})"
    if unit.form == "map":
        return f"lax.map({function}, {arguments})"
    if unit.form == "fori":
        return f"lax.fori_loop(0, 3, {function}, {arguments})"
    return f"{function}({arguments})"


def named(unit: Unit) -> str:
    """What a guard names to guard it."""
    return f"h_{unit.name}" if unit.helper else _access(unit)


def _call(program: Program, number: int, step: Step) -> str:
    unit = program.units[step.unit]
    table = BATCHED if unit.target == "vmap" or step.under == "vmap" else MAPPED if unit.form == "pmap" else ARRAYS
    x = table[step.x]
    function = (
        f"w_{unit.name}"
        if program.guard.form == "wrap"
        else f"h_{unit.name}"
        if unit.helper
        else _access(unit, step.option)
    )
    y = (f", y={step.y}" if step.keyword else f", {step.y}") if step.y else ""
    if step.option and unit.helper:
        key, value = step.option.split("=")
        y += f", options={{'{key}': {value}}}"

    def applied(first: str) -> str:
        if unit.helper or program.guard.form == "wrap":
            return f"{function}({first}{y})"
        return _loop(unit, function, first + y)

    if step.under == "grad":
        return f"jax.grad(lambda v: jnp.sum({applied('v')}))({x})"
    if step.under == "vmap":
        return f"jax.vmap(lambda v: {applied('v')})({x})"
    if step.under == "jit":
        return f"jax.jit(lambda v: ran('o{number}', v) and {applied('v')})({x})"
    if step.under == "eval_shape":
        return f"jax.eval_shape({function}, {x}{y})"
    if step.under == "lower":
        return f"{function}.lower({x}{y})"
    return applied(x)


def _step_lines(program: Program, number: int, step: Step) -> list[str]:
    lines = {"": [], "clear": ["clear_caches()"], "collect": ["gc.collect()"]}[step.before]
    lines = list(lines)
    indent = ""
    if step.times > 1:
        lines.append(f"for _ in range({step.times}):")
        indent = "    "
    call = _call(program, number, step)
    if step.thread:
        call = f"in_thread(lambda: {call}, {step.thread})"
    lines.append(f"{indent}at({number})")
    if step.context or step.fails:
        managers = [
            {"x64": "x64()", "precision": 'jax.default_matmul_precision("highest")', "disable_jit": "jax.disable_jit()"}[step.context]
        ] if step.context else []  # fmt: skip
        if step.fails:
            managers.append("failing()")
        lines.append(f"{indent}with {', '.join(managers)}:")
        indent += "    "
    lines.append(f"{indent}{call}  # call:{number}")
    return lines


def marks_by_name(program: Program) -> bool:
    """Whether the mark names all functions that are called; it can where each has a plain name in the module."""
    used = [program.units[step.unit] for step in program.steps]
    return all(
        named(unit).isidentifier() and (unit.helper or unit.form not in ("scan", "map", "fori")) for unit in used
    )


def unmarked(program: Program) -> Program:
    """The same program with a block in place of the mark."""
    if program.guard.form != "mark":
        return program
    return replace(program, guard=replace(program.guard, form="named" if marks_by_name(program) else "all"))


def _drive(program: Program) -> list[str]:
    guard = program.guard
    options = ""
    if guard.max_traces != 1:
        options += f", max_traces={guard.max_traces}"
    if guard.per != "signature":
        options += f', per="{guard.per}"'
    lines = ["def before():", "    pass"]
    for number, step in enumerate(program.warm):
        lines += ["    " + line for line in _step_lines(program, number, step)]
    lines += ["", ""]
    steps = [_step_lines(program, number, step) for number, step in enumerate(program.steps, len(program.warm))]
    if guard.inner:
        first, last = guard.inner
        steps[first] = ["with guard():", *["    " + line for line in steps[first]]]
        for number in range(first + 1, last + 1):
            steps[number] = ["    " + line for line in steps[number]]
    flat = [line for step in steps for line in step]
    if guard.escape:
        flat.append("raise Oops")
    used = [program.units[i] for i in sorted({step.unit for step in program.steps})]
    names = ", ".join(named(unit) for unit in used)
    if guard.form in ("all", "named"):
        arguments = (names if guard.form == "named" else "") + options
        lines += [
            "def drive(guard):",
            f"    with guard({arguments.removeprefix(', ')}) as traces:",
            "        out(traces)",
        ]
        return lines + ["        " + line for line in flat]
    if guard.form == "mark":
        names = ", ".join(f'"{MODULE}.{named(unit)}"' for unit in used if marks_by_name(program))
        lines += [f"@pytest.mark.traced_once({(names + options).removeprefix(', ')})", "def test_program():"]
        return lines + ["    " + line for line in flat]
    if guard.form == "plain":
        lines += ["def work(guard):", *["    " + line for line in flat], "", ""]
        return [
            *lines,
            "def drive(guard):",
            f"    with guard(work{options}) as traces:",
            "        out(traces)",
            "        work(guard)",
        ]
    lines.append("def drive(guard):")
    for unit in used:
        lines += [f"    w_{unit.name} = guard({named(unit)}{options})", f"    out(w_{unit.name}.traces)"]
    return lines + ["    " + line for line in flat]


# --- smaller ones


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less, the largest steps first."""
    for i in range(len(program.steps)):
        if len(program.steps) > 1:
            inner = program.guard.inner
            guard = program.guard if inner is None else replace(program.guard, inner=None)
            yield replace(program, steps=program.steps[:i] + program.steps[i + 1 :], guard=guard)
            if inner is not None and i < inner[0]:
                yield replace(
                    program,
                    steps=program.steps[:i] + program.steps[i + 1 :],
                    guard=replace(guard, inner=(inner[0] - 1, inner[1] - 1)),
                )
            if inner is not None and i > inner[1]:
                yield replace(program, steps=program.steps[:i] + program.steps[i + 1 :], guard=program.guard)
    for i in range(len(program.warm)):
        yield replace(program, warm=program.warm[:i] + program.warm[i + 1 :])
    for i in range(len(program.units)):
        if len(program.units) > 1 and all(step.unit != i for step in program.all_steps):
            move = {j: j - (j > i) for j in range(len(program.units))}
            yield replace(
                program,
                units=program.units[:i] + program.units[i + 1 :],
                steps=tuple(replace(step, unit=move[step.unit]) for step in program.steps),
                warm=tuple(replace(step, unit=move[step.unit]) for step in program.warm),
            )
    if program.guard.inner:
        yield replace(program, guard=replace(program.guard, inner=None))
    if program.guard.form in ("mark", "plain"):
        yield replace(program, guard=replace(program.guard, form="all"))
    for change in ({"max_traces": 1}, {"per": "signature"}, {"escape": False}):
        if replace(program.guard, **change) != program.guard:
            yield replace(program, guard=replace(program.guard, **change))
    plain_step = Step(0)
    for where in ("steps", "warm"):
        steps = getattr(program, where)
        for i, step in enumerate(steps):
            for entry in dataclasses.fields(Step):
                if entry.name in ("unit", "y"):
                    continue
                one = replace(step, **{entry.name: getattr(plain_step, entry.name)})
                if one != step:
                    yield replace(program, **{where: (*steps[:i], one, *steps[i + 1 :])})
    plain_unit = Unit("")
    for i, unit in enumerate(program.units):
        for name in ("inside", "by_name", "target", "form", "life"):
            other = replace(unit, **{name: getattr(plain_unit, name)})
            if other != unit:
                yield replace(program, units=(*program.units[:i], other, *program.units[i + 1 :]))
