"""The text of the JIT1xx findings: what happens, on which occasion, why, and the one change that fixes it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import method_kind
from flake8_jitcache.facts.jits import Creation
from flake8_jitcache.facts.module import Module
from flake8_jitcache.facts.places import class_of, describe_loop, functions_around, is_bound_in, place_of
from flake8_jitcache.facts.scopes import DEFINITIONS, FUNCTIONS, Binding, Function
from flake8_jitcache.facts.stays import assigned_later
from flake8_jitcache.facts.targets import Target
from flake8_jitcache.rules.listing import listed
from flake8_jitcache.rules.needs import needed_by_python

# What a cache can't have as a key.
_UNHASHABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


@dataclass(frozen=True)
class Occasion:
    """When a place is evaluated: on each call of a function, or on each iteration of a loop."""

    function: Function | None
    loop: ast.AST | None

    def __str__(self) -> str:
        if self.loop is not None:
            return f"on each iteration of {describe_loop(self.loop)}"
        return "once" if self.function is None else f"on each call of {_named(self.function)}"


def wording(
    module: Module,
    code: str,
    node: ast.expr,
    creation: Creation,
    target: Target,
    occasion: Occasion,
    factory: Function | None,
) -> str:
    """The text of one finding, without its code. `node` is where it sits: the jit, or the call of a factory."""
    return _Wording(module, node, creation, target, occasion, factory).of(code)


@dataclass
class _Captured:
    """What a function captures: plain names, local functions that have to move along with it (as arguments they would
    be new objects each time), which of the names are called, and whether methods of `self` or of its parts are."""

    names: list[str] = field(default_factory=list)
    moving: list[str] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    calls_self: bool = False


@dataclass(frozen=True)
class _Wording:
    module: Module
    node: ast.expr
    creation: Creation
    target: Target
    occasion: Occasion
    factory: Function | None

    def of(self, code: str) -> str:
        occasion, target = self.occasion, self.target
        cost = "so JAX traces and compiles it again each time"
        if target.again == "compiles":
            cost = "so JAX compiles it again each time (its trace is found again)"
        if code == "JIT101":
            return f"a jitted lambda is made anew {occasion} and dropped, {cost}; {self._hoist()}"
        if code == "JIT102":
            return f"a jitted partial is made anew {occasion} and dropped, {cost}; {self._unbind()}"
        if code == "JIT103":
            name = getattr(target.function, "name", "function")
            return f"the jitted function `{name}` is defined anew {occasion} and dropped, {cost}; {self._hoist()}"
        if code == "JIT104":
            return (
                f"a method is looked up on its object and jitted anew {occasion}, and a bound method is a new object "
                f"each time, {cost}; {self._method()}"
            )
        if code == "JIT105":
            if self.creation.maker.wraps_anew and target.made_by == self.creation.maker.name:
                return (
                    f"`{target.made_by}` wraps its function in a new one {occasion}, and it is dropped, {cost}; "
                    f"make the jitted function once, {self._keep()}"
                )
            made = f"the result of `{target.made_by}`" if target.made_by else "the result of a call"
            return (
                f"{made} is jitted anew {occasion} and dropped, {cost}; make the jitted function once, {self._keep()}"
            )
        if code == "JIT106":
            return self._dropped_factory()
        if code == "JIT107":
            return (
                f"a function that does not change is wrapped in a jit {occasion}; its trace is kept, but the wrapper "
                f"is made again each time, which costs more than a warm call; {self._wrap_once()}"
            )
        if code == "JIT191":
            if occasion.function is None:
                return "a jit is made in code that runs once and is not kept; at module level it could be used again"
            return (
                f"a jit is made {occasion} and used only in that call; made once at module level it would be traced "
                "once for all calls"
            )
        return f"a jit is made {occasion} and kept; made at module level it would be made once"

    # ---------------------------------------------------------------- remedies

    def _hoist(self) -> str:
        """For a lambda or a nested function: where its captures and its options let it move to."""
        function = self.target.function
        captured = _Captured() if function is None else self._captured(function)
        varying = self._varying()
        define = f"define {_listed(['it', *(f'`{name}`' for name in captured.moving)])} once"
        if varying:
            given = f" and pass {_as_arguments(captured)}" if captured.names else ""
            return f"{define} at module level{given}, and {_one_for_each(varying)}"
        if captured.calls_self:
            captured.names.remove("self")
            changed = self._changed_on_self(function)
            if changed is not None:
                return f"{define} at module level and pass it what it reads on the object, {changed}"
            if not captured.names:
                return f"{define} in `__init__` and keep it on the object"
            return f"{define} in `__init__`, keep it on the object, and pass {_as_arguments(captured)}"
        if not captured.names:
            constants = [] if function is None else _constants(self.module, function)
            if constants:
                return f"{define} at module level, and {listed(constants)} beside it"
            return f"{'' if captured.moving else 'it captures nothing: '}{define} at module level"
        return f"{define} at module level and pass {_as_arguments(captured)}"

    def _captured(self, function: Function) -> _Captured:
        """What a function captures, itself and through the local functions that it captures."""
        found = _Captured()
        pending: list[ast.AST] = [function]
        seen: set[ast.AST] = {function}
        while pending:
            node = pending.pop(0)
            found.called |= _called_names(node) | self._needed_names(node)
            found.calls_self = found.calls_self or _calls_self(node)
            for name, bindings in self._read_from_around(node).items():
                makers = [self._local_maker(binding) for binding in bindings]
                if None in makers:
                    found.names.append(name)
                    continue
                if function not in makers:
                    found.moving.append(name)
                new = [maker for maker in makers if maker is not None and maker not in seen]
                pending += new
                seen.update(new)
        found.names = list(dict.fromkeys(found.names))
        found.calls_self = found.calls_self and "self" in found.names
        found.moving = list(dict.fromkeys(found.moving))
        return found

    def _needed_names(self, within: ast.AST) -> set[str]:
        """The names whose values some code has to know while it is traced."""
        names = [n for n in ast.walk(within) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        return {name.id for name in names if needed_by_python(self.module, name) is not None}

    def _read_from_around(self, node: ast.AST) -> dict[str, list[Binding]]:
        """The names that a function or an expression reads from the functions around it, with their bindings."""
        if isinstance(node, FUNCTIONS):
            source = self.module.source
            own = source.scope_of_function[node]
            owners = {name: source.lookup(own, name) for name in captures(self.module, node, self.occasion.loop)}
            return {name: [] if owner is None else owner.bindings[name] for name, owner in owners.items()}
        found: dict[str, list[Binding]] = {}
        for binding in self._locals(node):
            found.setdefault(binding.name, []).append(binding)
        return found

    def _local_maker(self, binding: Binding) -> ast.AST | None:
        """The local definition, lambda, partial or transform that a name is bound to, if it is one."""
        if binding.kind == "def":
            return binding.node
        value = binding.value if binding.kind == "assign" else None
        if isinstance(value, ast.Lambda):
            return value
        if isinstance(value, ast.Call) and self.module.names.dotted(value.func) & (known.TRANSFORMS | known.PARTIALS):
            return value
        return None

    def _unbind(self) -> str:
        """For a partial: what it binds becomes arguments, if it is not of the module's own."""
        partial = self.target.origin
        bound: list[ast.expr] = []
        if isinstance(partial, ast.Call):
            bound = [*partial.args, *(keyword.value for keyword in partial.keywords)]
        changing = self._varying() or any(True for value in bound for _ in self._locals(value))
        if bound and not changing:
            return "what it binds does not change: make the jitted partial once at module level"
        if any(self._is_function(value) for value in bound[1:]):
            return (
                "jit one function at module level that does the same, and pass it what the bound function captures "
                "as arguments"
            )
        return (
            "jit the function itself once at module level and pass it the bound values as arguments "
            "(static ones, where they are no arrays)"
        )

    def _is_function(self, value: ast.expr) -> bool:
        if self.module.definitions.functions(value):
            return True
        target = self.module.targets.classify(value)
        if target.kind == "transform":  # any call's result: a function only where a transform made it
            return isinstance(value, ast.Call) and bool(self.module.names.dotted(value.func) & known.TRANSFORMS)
        return target.is_fresh

    def _method(self) -> str:
        target, module = self.target, self.module
        method = target.function
        receiver = target.origin.value if isinstance(target.origin, ast.Attribute) else None
        data = "jit a function of the object's data"
        if receiver is not None and self._is_made_here(receiver):
            return f"{data} at module level, as the object is made anew as well"
        if isinstance(method, DEFINITIONS):
            owner = class_of(module.source, method)
            if owner is not None and "equinox.Module" in module.definitions.bases(owner):
                return f"decorate `{method.name}` with `equinox.filter_jit`"
            if isinstance(receiver, ast.Name) and module.definitions.is_class(receiver):
                return f"make `{method.name}` a static method and jit it once at module level"
            if owner is not None:
                changed = assigned_later(module, owner, method)
                if changed is not None:  # kept, it would go on with the old value
                    return (
                        f"jit a function at module level and pass it what `{method.name}` reads on the object, as "
                        f"`self.{changed.attr}` is assigned in line {changed.lineno}"
                    )
                return f"jit `{method.name}` once in `__init__` and keep it, or {data}"
        return f"jit it once where the object is made and keep it there, or {data}"

    def _keep(self) -> str:
        """Where the jitted product of a call can be made once."""
        target, occasion = self.target, self.occasion
        function = target.function
        around = functions_around(self.module.source, function) if function is not None else []
        made_here = occasion.function is not None and occasion.function in around
        if function is not None and made_here and not self._on_self():
            captured = self._captured(function)
            if captured.names:
                return f"at module level, with {_as_arguments(captured)}"
        used = set(self._used())
        if occasion.loop is not None and not any(self._bound_in_loop(binding) for binding in used):
            return "before the loop"
        if self._on_self():
            changed = self._changed_on_self(self.creation.target)
            if changed is not None:
                return f"at module level, of a function that gets what it reads on the object as arguments, {changed}"
            return "in `__init__`, and keep it on the object"
        if not used:
            return "at module level"
        return f"outside of {_named(occasion.function)}, and keep it" if occasion.function else "and keep it"

    def _wrap_once(self) -> str:
        """Where a stable function can be jitted once: where it lives, or where its options are known."""
        occasion, varying = self.occasion, self._varying()
        homes = [binding.scope.function for binding in self._option_locals()]
        if self.target.origin is not None:
            homes.append(place_of(self.module.source, self.target.origin).function)
        homes = [home for home in homes if home is not None]
        if not homes and (occasion.function is not None or self.target.function is not None):
            return "jit it once at module level"
        if not homes or (occasion.loop is not None and not any(map(self._bound_in_loop, self._option_locals()))):
            return "jit it once before the loop"
        if occasion.function in homes:
            return _one_for_each(varying) if varying else "jit it once at module level"
        around = functions_around(self.module.source, self.creation.node)
        home = next((function for function in around if function in homes), None)
        return f"jit it once in {_named(home)}, outside of {_named(occasion.function)}"

    def _dropped_factory(self) -> str:
        factory, occasion = self.factory, self.occasion
        is_constructor = isinstance(factory, DEFINITIONS) and factory.name == "__init__"
        owner = class_of(self.module.source, factory) if factory is not None and is_constructor else None
        if owner is not None:
            return (
                f"`{owner.name}` jits in its constructor, and an object of it is made {occasion} and dropped, so JAX "
                "traces and compiles it again each time; make the object once before the loop, and pass its methods "
                "what changes"
            )
        name = "a lambda" if factory is None else _named(factory)
        keep = self._keep_product()
        if not self.target.is_fresh:
            return (
                f"{name} makes a new jit wrapper {occasion}, and it is dropped; the trace of the function inside is "
                f"kept, but a wrapper costs more than a warm call; {keep}"
            )
        return (
            f"{name} returns a newly made jitted function {occasion}, and it is dropped, so JAX traces and compiles "
            f"it again each time; {keep}"
        )

    def _keep_product(self) -> str:
        """Where the product of a factory can be kept: by what its call depends on, and where the factory stands."""
        factory, occasion, call = self.factory, self.occasion, self.node
        given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
        changing = [b for value in given for b in self._locals(value) if b.name not in ("self", "cls")]
        plain = [v.id for v in given if isinstance(v, ast.Name) and any(b.name == v.id for b in changing)]
        hashable = (
            f", if {_listed(f'`{n}`' for n in plain)} {'is' if len(plain) == 1 else 'are'} hashable" if plain else ""
        )
        longer = "keep its product in a variable that lives longer"
        if isinstance(factory, DEFINITIONS):
            names = self.module.names
            if any("property" in names.dotted(d) for d in factory.decorator_list):
                return "make it a `functools.cached_property`"
            around = functions_around(self.module.source, factory)
            if class_of(self.module.source, factory) is not None and method_kind(factory, names) == "instance":
                if changing:
                    keys = _listed(f"`{binding.name}`" for binding in changing)
                    return f"keep its products on the object, in a dictionary by {keys}"
                changed = self._changed_on_self(factory)
                if changed is not None:
                    return f"jit one function at module level and pass it what it reads on the object, {changed}"
                return "make its product once in `__init__` and keep it on the object"
            if around and not any(isinstance(value, _UNHASHABLE) for value in given):
                moved = f"move it out of {_named(around[0])} and put `functools.cache` on it{hashable}"
                return f"{moved}, or keep its product"
        if occasion.loop is not None and not any(map(self._bound_in_loop, changing)):
            return "make its product once before the loop"
        if any(self.module.targets.classify(value).is_fresh for value in given):
            return longer  # a cache would never find what is made anew
        if any(isinstance(value, _UNHASHABLE) for value in given):
            return longer  # a cache would raise a TypeError
        return f"{longer}, or put `functools.cache` on it{hashable}"

    # ---------------------------------------------------------------- what a place depends on

    def _options(self) -> list[ast.keyword]:
        """The options of the jit, those bound by partials too."""
        creation = self.creation
        if creation.definition is not None or not isinstance(creation.node, ast.Call):
            return [keyword for keyword in creation.maker.keywords if keyword.arg is not None]
        given = (*creation.maker.keywords, *creation.node.keywords)
        return [k for k in given if k.arg is not None and k.arg not in ("fun", "f", "fn", "func")]

    def _varying(self) -> list[str]:
        """The options whose values depend on names of the functions around, and the names that other decorators read
        from there: the jit can't just move out of them."""
        options = [keyword.arg or "" for keyword in self._options() if any(True for _ in self._locals(keyword.value))]
        definition = self.creation.definition
        others = [] if definition is None else [d for d in definition.decorator_list if d is not self.creation.node]
        return options + [binding.name for other in others for binding in self._locals(other)]

    def _option_locals(self) -> list[Binding]:
        return [binding for keyword in self._options() for binding in self._locals(keyword.value)]

    def _used(self) -> Iterator[Binding]:
        """The locals around that the target and the options are made of."""
        expressions: list[ast.AST] = [keyword.value for keyword in self._options()]
        if isinstance(self.creation.target, ast.expr):
            expressions.append(self.creation.target)
        pending = [binding for expression in expressions for binding in self._locals(expression)]
        seen: set[Binding] = set()
        while pending:
            binding = pending.pop()
            if binding in seen:
                continue
            seen.add(binding)
            maker = self._local_maker(binding)
            if maker is None and binding.kind == "assign" and isinstance(binding.value, ast.Call):
                maker = binding.value
            if maker is None:
                yield binding
            else:
                pending += [b for bindings in self._read_from_around(maker).values() for b in bindings]

    def _locals(self, expression: ast.AST) -> Iterator[Binding]:
        """The bindings, in functions around, of the names that an expression reads."""
        source = self.module.source
        own = [source.scope_of_function[n] for n in ast.walk(expression) if n in source.scope_of_function]
        for node in ast.walk(expression):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                owner = source.lookup(source.scopes[node], node.id)
                if owner is None or owner.kind == "class" or owner in own:
                    continue
                for binding in source.reaching(node):
                    if is_constant(owner.bindings[node.id]):
                        continue
                    in_loop = self.occasion.loop is not None and self._bound_in_loop(binding)
                    if (owner.kind != "module" or in_loop) and binding.kind not in ("import", "class"):
                        yield binding

    def _bound_in_loop(self, binding: Binding) -> bool:
        loop = self.occasion.loop
        return loop is not None and is_bound_in(self.module.source, binding, loop)

    def _is_made_here(self, receiver: ast.expr) -> bool:
        """Whether the object of a method is made in the function that jits it, anew on each occasion."""
        source = self.module.source
        if isinstance(receiver, ast.Call):
            return not (isinstance(receiver.func, ast.Name) and receiver.func.id == "super")
        if not isinstance(receiver, ast.Name):
            return False
        return any(
            binding.kind == "assign"
            and isinstance(binding.value, ast.Call)
            and binding.scope.function is not None
            and binding.scope.function is self.occasion.function
            and (self.occasion.loop is None or self._bound_in_loop(binding))
            for binding in source.reaching(receiver)
        )

    def _changed_on_self(self, reader: ast.AST | None) -> str | None:
        """Why a function that reads attributes of `self` can't be kept on the object: one that is assigned later."""
        module = self.module
        around = functions_around(module.source, self.creation.node)
        owner = class_of(module.source, around[-1]) if around else None
        changed = None if owner is None or reader is None else assigned_later(module, owner, reader)
        return None if changed is None else f"as `self.{changed.attr}` is assigned in line {changed.lineno}"

    def _on_self(self) -> bool:
        """Whether the target is made of attributes of `self`."""
        target = self.creation.target
        return isinstance(target, ast.expr) and any(
            isinstance(node, ast.Name) and node.id == "self" for node in ast.walk(target)
        )


def _as_arguments(captured: _Captured) -> str:
    """What a function captures, as arguments; `self` can't be one, and what is called is a static one."""
    called = captured.called
    own = [name for name in captured.names if name in ("self", "cls")]
    plain = [f"`{name}`" for name in captured.names if name not in called and name not in own]
    static = [f"`{name}`" for name in captured.names if name in called and name not in own]
    if own:
        plain = [*plain[:3], f"what it reads of `{own[0]}`"]
    parts = []
    if plain:
        parts.append(_listed(plain) + (" as arguments" if len(plain) > 1 or own else " as an argument"))
    if static:
        noun = "one" if plain else "argument"
        parts.append(_listed(static) + (f" as static {noun}s" if len(static) > 1 else f" as a static {noun}"))
    return " and ".join(parts)


def _one_for_each(options: list[str]) -> str:
    values = _listed(f"`{option}`" for option in options)
    return f"make one jitted function for each value of {values}, in a function under `functools.cache`"


def _named(function: Function | None) -> str:
    """How to speak of a function."""
    if isinstance(function, ast.Lambda):
        return f"the lambda in line {function.lineno}"
    return f"`{function.name}`" if function is not None else "the module"


def _listed(parts: Iterable[str]) -> str:
    unique = list(dict.fromkeys(parts))
    if len(unique) > 4:
        return ", ".join(unique[:4]) + " and more"
    return " and ".join([", ".join(unique[:-1]), unique[-1]] if len(unique) > 1 else unique)


def _called_names(within: ast.AST) -> set[str]:
    """The names that some code calls, or hands to a transform: functions, which a jit can't take as arrays."""
    calls = [node for node in ast.walk(within) if isinstance(node, ast.Call)]
    found = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
    transforms = {name.rpartition(".")[2] for name in known.TRANSFORMS}
    for node in calls:
        callee = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if callee in transforms and node.args and isinstance(node.args[0], ast.Name):
            found.add(node.args[0].id)
    return found


def _calls_self(within: ast.AST) -> bool:
    """Whether some code calls a method of `self`, or of something that it holds: no argument can stand for it."""
    for node in ast.walk(within):
        called = node.func if isinstance(node, ast.Call) else None
        while isinstance(called, ast.Attribute):
            called = called.value
        if isinstance(called, ast.Name) and called.id == "self":
            return True
    return False


def captures(module: Module, function: Function, loop: ast.AST | None = None) -> list[str]:
    """The names that a function reads from the functions around it, in source order; at module level, those that the
    loop around it binds."""
    source = module.source
    own = source.scope_of_function[function]
    found: dict[str, tuple[int, int]] = {}
    for scope in own.within():
        for name, loads in scope.loads.items():
            owner = source.lookup(scope, name)
            if owner is None or owner.is_within(own):
                continue
            if owner.kind in ("module", "class") and not (
                loop is not None and any(is_bound_in(source, binding, loop) for binding in owner.bindings[name])
            ):
                continue
            if is_constant(owner.bindings[name]):
                continue
            first = min((load.lineno, load.col_offset) for load in loads)
            if name not in found or first < found[name]:
                found[name] = first
    return sorted(found, key=lambda name: found[name])


def is_constant(bindings: Sequence[Binding]) -> bool:
    """Whether a name is bound once, to a literal, which can move along with what reads it."""
    return len(bindings) == 1 and bindings[0].kind == "assign" and isinstance(bindings[0].value, ast.Constant)


def _constants(module: Module, function: Function) -> list[str]:
    """The names of the functions around that a function reads and that are bound to a literal."""
    own = module.source.scope_of_function[function]
    found = []
    for scope in own.within():
        for name in scope.loads:
            owner = module.source.lookup(scope, name)
            outside = owner is not None and owner.kind == "function" and not owner.is_within(own)
            if outside and owner is not None and is_constant(owner.bindings[name]):
                found.append(name)
    return list(dict.fromkeys(found))
