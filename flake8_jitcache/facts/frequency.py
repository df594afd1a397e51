"""Question 3, second half: does a function run once, or often?

What is certain decides alone: entry points, tests and what only they call run once; what a loop of the file calls runs
often. For the rest the evidence is weighed in one table. Where nothing speaks for either, a function runs often: that
is what functions are for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from flake8_jitcache.facts import known
from flake8_jitcache.facts.definitions import Definitions
from flake8_jitcache.facts.names import Names, pattern
from flake8_jitcache.facts.places import class_of, functions_around, loops_around, place_of
from flake8_jitcache.facts.scopes import DEFINITIONS, LOOPS, Definition, Function, Source
from flake8_jitcache.options import Options

_TEST_MODULE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
_TEST_NAME = re.compile(r"_?test(?![a-z])")
_BENCHMARK = re.compile(r"(^|_)(bench|benchmark|benchmarks|timeit|profile)(_|$)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

MAIN = frozenset({"main", "_main", "__main__", "async_main", "run_main", "main_"})
TEST_METHODS = frozenset(
    {"setUp", "setUpClass", "setUpModule", "tearDown", "tearDownClass", "setup_method", "setup_class", "setup_module",
     "asyncSetUp", "teardown_method", "teardown_class", "teardown_module"}
)  # fmt: skip
# Methods that run once for each object.
PER_OBJECT = frozenset({"__init__", "__post_init__", "__init_subclass__", "__new__", "__set_name__", "__enter__",
                        "__setstate__", "__attrs_post_init__", "setup"})  # fmt: skip

SETUP_WORDS = frozenset(
    "init initialize initialise initialization initialisation initial setup create build load restore configure construct download benchmark bench "
    "profile demo example examples tutorial experiment script bootstrap launch pretrain instantiate make warmup reinitialize reinitialise deserialize "
    "deserialise unserialize from reshard fully replicate reload".split()
)
# Words of preparation that a short helper may bear as well.
PREPARING_WORDS = frozenset(
    "prepare register export convert preprocess compile plot visualize visualise animate debug verify check save "
    "checkpoint tabulate calibrate summarize report".split()
)
# Words of set-up that end a name as well: `model_init`, `fully_shard`.
# `from_config`, `fully_gather`: conversions of a whole, made once.
CONVERTING_WORDS = frozenset("from fully mesh".split())
FINAL_SETUP_WORDS = frozenset("init initialize initialise setup benchmark shard sharding restore".split())
MEASURING_WORDS = frozenset("bench benchmark benchmarks profile".split())
# Names such as `shard_params`: what is moved to its devices once, before the loop.
MOVING_WORDS = frozenset("shard distribute replicate place put".split())
LASTING_WORDS = frozenset("param params parameters state states model models module weights variables".split())
DRIVER_WORDS = frozenset("train training trainer fit run".split())
EVALUATING_WORDS = frozenset("evaluate eval validate".split())
HOT_WORDS = frozenset(
    "step update sample loss forward predict act apply call evaluate_batch backward propagate reduce gather psum pmean "
    "normalize normalise reshape transform encode decode embed score infer select get compute evaluate".split()
)
# First words of methods and functions that somebody's loop calls: `next_batch`, `step_once`, `update_state`.
HOT_FIRST_WORDS = frozenset("next step update sample act".split())
HOT_METHODS = frozenset({"__call__", "step", "update", "sample", "loss", "forward", "predict", "act", "apply"})


@dataclass(frozen=True)
class Evidence:
    """One sign that a function runs once (weight below zero) or often (above)."""

    what: str
    weight: int
    holds: Callable[[Frequency, Definition], bool]


class Frequency:
    """Tells functions that run once from those that run often."""

    def __init__(
        self, source: Source, names: Names, definitions: Definitions, options: Options, filename: str = ""
    ) -> None:
        self._source = source
        self._names = names
        self._definitions = definitions
        self.in_test_module = bool(_TEST_MODULE.fullmatch(PurePath(filename).name))
        self._once = [pattern(name) for name in options.run_once_names]
        self._hot = [pattern(name) for name in options.hot_names]
        self._entries = [pattern(name) for name in known.ENTRY_POINTS]

    def runs_once(self, function: Function) -> bool:
        """Whether a function runs once in a process (or once for each object or test)."""
        known_answer = self._answers.get(function)
        if known_answer is None:
            self._answers[function] = False  # a recursion is no evidence
            known_answer = self._answers[function] = self._decide(function)
        return known_answer

    def is_test(self, function: Function) -> bool:
        """Whether a function is a test, a fixture or a test case's set-up, or stands in one."""
        return self.in_test_module or any(self._is_test(f) for f in self._chain(function))

    @cached_property
    def _answers(self) -> dict[Function, bool]:
        return {}

    def _chain(self, function: Function) -> list[Function]:
        return [function, *functions_around(self._source, function)]

    # ---------------------------------------------------------------- what is certain

    def _decide(self, function: Function) -> bool:
        if self._named(function, self._hot):
            return False
        if self._named(function, self._once) or self.is_entry(function) or self._is_test(function):
            return True
        if self._measures(function):
            return True
        outer = functions_around(self._source, function)
        calls = self._definitions.calls_of(function)
        if self._is_repeated(calls):
            return False
        if any(isinstance(f, DEFINITIONS) and _BENCHMARK.search(f.name) for f in outer):
            return True  # a thunk that a benchmark makes
        if isinstance(function, ast.Lambda):
            return bool(calls) and self._are_once(calls)
        if function.name in PER_OBJECT and class_of(self._source, function) is not None:
            return True
        if self._only_from_once(function, calls):
            return True
        if outer:
            return any(self._measures(f) for f in outer)
        return self.weigh(function) <= -2

    def _measures(self, function: Function) -> bool:
        """Whether a function prepares measurements: what stands in it is called to be measured."""
        return isinstance(function, DEFINITIONS) and not MEASURING_WORDS.isdisjoint(self.words(function))

    def _named(self, function: Function, patterns: Iterable[re.Pattern[str]]) -> bool:
        if not patterns or isinstance(function, ast.Lambda):
            return False
        parts = [function.name]
        for around in self._source.ancestors(function):
            if isinstance(around[1], (ast.ClassDef, *DEFINITIONS)):
                parts.insert(0, around[1].name)
        spellings = {".".join(parts[i:]) for i in range(len(parts))}
        return any(p.fullmatch(spelling) for p in patterns for spelling in spellings)

    def is_entry(self, function: Function) -> bool:
        """Whether a function is where the program begins."""
        if isinstance(function, ast.Lambda):
            return False
        if function.name in MAIN and class_of(self._source, function) is None:
            return True
        for decorator in function.decorator_list:
            node = decorator.func if isinstance(decorator, ast.Call) else decorator
            dotted = self._names.dotted(node)
            if isinstance(decorator, ast.Call) and decorator.args and getattr(node, "attr", "") == "callback":
                continue  # a page's callback, with what it reads and writes
            if isinstance(node, ast.Attribute) and not dotted:
                dotted = frozenset({f"app.{node.attr}"})
            elif isinstance(node, ast.Attribute) and not any("." in name for name in dotted):
                dotted |= {f"app.{node.attr}"}
            if any(p.fullmatch(name) for p in self._entries for name in dotted):
                return True
        return function in self._started

    @cached_property
    def _started(self) -> set[Function]:
        """The functions that are handed to something that runs the program with them."""
        return {
            function
            for call in self._source.calls
            for argument in self._begun_by(call)
            for function in self._definitions.functions(argument)
        }

    def _begun_by(self, call: ast.Call) -> list[ast.AST]:
        """What a call begins the program with: arguments, those in a table or a list too."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_defaults":
            return [keyword.value for keyword in call.keywords]  # a parser's subcommand
        if not self._names.dotted(call.func) & known.STARTERS:
            return []
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        return [part for value in given for part in (value, *ast.iter_child_nodes(value))]

    def _is_test(self, function: Function) -> bool:
        if isinstance(function, ast.Lambda):
            return self.in_test_module
        if self.in_test_module and not self._is_of_program(function):
            return True  # a table of cases, a check of several tests
        if function.name in TEST_METHODS or (_TEST_NAME.match(function.name) and self._may_be_test(function)):
            return True
        owner = class_of(self._source, function)
        if owner is not None and any(base.endswith("TestCase") for base in self._definitions.bases(owner)):
            return True  # a helper of a test case's tests
        return any(
            self._names.dotted(d.func if isinstance(d, ast.Call) else d) & known.FIXTURES
            for d in function.decorator_list
        )

    def _is_of_program(self, function: Definition) -> bool:
        """Whether a function of a test module is a method that stands for a program's: no test's helper."""
        return self.is_method(function) and function.name in HOT_METHODS

    def _may_be_test(self, function: Definition) -> bool:
        """Whether what is named like a test can be one: `test` alone, as a method, is often part of an application."""
        owner = class_of(self._source, function)
        if owner is None or function.name.strip("_") != "test":
            return True
        return owner.name.startswith("Test") or any(
            base.endswith("TestCase") for base in self._definitions.bases(owner)
        )

    def _is_repeated(self, calls: list[ast.Call]) -> bool:
        """Whether one of the calls of a function stands in a loop."""
        known_answer = self._repeated.get(id(calls))
        if known_answer is None:
            known_answer = self._repeated[id(calls)] = any(self._repeats(call) for call in calls)
        return known_answer

    @cached_property
    def _repeated(self) -> dict[int, bool]:
        return {}  # by the identity of a list of calls, which methods of one name share

    def _repeats(self, call: ast.Call) -> bool:
        """Whether a call stands in a loop, and not in a test's."""
        if not loops_around(self._source, call):
            return False
        function = place_of(self._source, call).function
        return function is None or not self.is_test(function)

    def _is_once(self, call: ast.AST) -> bool:
        """Whether a node is evaluated once."""
        place = place_of(self._source, call)
        if place.loop is not None and not (place.function is not None and self.is_test(place.function)):
            return False
        return place.function is None or self.runs_once(place.function)

    def _only_from_once(self, function: Definition, calls: list[ast.Call]) -> bool:
        uses = self._definitions.uses(function)
        if len(calls) != len(uses):
            chosen = [self._calls_at(use) for use in uses]
            if not all(chosen):
                return False
            calls = [call for found in chosen for call in found]
        if class_of(self._source, function) is not None and not function.name.startswith("_"):
            # A public method may be called from another file as well: what its callers are by their names proves nothing.
            around = [place_of(self._source, call).function for call in calls]
            if not all(caller is None or self._is_certain(caller) for caller in around):
                return False
        return bool(calls) and self._are_once(calls, function)

    def _is_certain(self, function: Function) -> bool:
        """Whether a function runs once for a reason other than the weight of its name and body."""
        if self.is_entry(function) or self.is_test(function) or self._named(function, self._once):
            return True
        return isinstance(function, DEFINITIONS) and function.name in PER_OBJECT

    def _calls_at(self, use: ast.expr) -> list[ast.Call]:
        """The calls that a use of a function's name leads to: its own, or those that choose the function from a table
        (`TASKS[name](arguments)`). None where it leads elsewhere too."""
        table = self._source.parents[use]
        if not isinstance(table, ast.Dict):
            return self._call_of(use)
        found: list[ast.Call] = []
        for read in self._reads(table):
            chosen = self._source.parents[read]
            if isinstance(chosen, ast.Attribute) and chosen.attr == "get":
                chosen = self._source.parents[chosen]
            elif not isinstance(chosen, ast.Subscript):
                if self._looks_at_keys(chosen):
                    continue
                return []
            assert isinstance(chosen, ast.expr)
            for value in self._reads(chosen):
                calls = self._call_of(value)
                if not calls:
                    return []
                found += calls
        return found

    def _call_of(self, use: ast.expr) -> list[ast.Call]:
        parent = self._source.parents[use]
        return [parent] if isinstance(parent, ast.Call) and parent.func is use else []

    def _reads(self, value: ast.expr) -> list[ast.expr]:
        """Where a value is read: through the name that it is given, or where it stands."""
        assign = self._source.parents[value]
        if not isinstance(assign, ast.Assign) or assign.value is not value:
            return [value]
        bindings = [b for target in assign.targets for b in self._source.bound_at(target)]
        return [load for binding in bindings for load in self._source.loads_of(binding)]

    def _looks_at_keys(self, node: ast.AST) -> bool:
        """Whether what holds a table reads its keys alone: `name in TASKS`, `choices=list(TASKS)`."""
        if isinstance(node, ast.Attribute):
            return node.attr == "keys"
        if isinstance(node, ast.Call):
            return bool(self._names.dotted(node.func) & {"list", "sorted", "tuple", "set", "print", "len"})
        return isinstance(node, (ast.Compare, ast.FormattedValue)) or getattr(node, "arg", "") == "choices"

    def _are_once(self, calls: list[ast.Call], function: Function | None = None) -> bool:
        # A plain loop: `all` of a generator takes a level of C's stack, of which Python 3.12 has few.
        for call in calls:  # noqa: SIM110
            if function in functions_around(self._source, call) or not self._is_once(call):
                return False
        return True

    # ---------------------------------------------------------------- what is weighed

    def weigh(self, function: Definition) -> int:
        """The sum of the evidence: at -2 and below, a function runs once."""
        return sum(e.weight for e in EVIDENCE if e.holds(self, function))

    def words(self, function: Definition) -> list[str]:
        """The words of a function's name, in lower case."""
        return [word.lower() for word in _WORD.findall(function.name)]

    def is_driver(self, function: Definition) -> bool:
        """Whether a function is a whole training or run by its name: what it makes lasts as long."""
        return self.words(function)[:1] != [] and self.words(function)[0] in DRIVER_WORDS | {"main"}

    def nodes(self, function: Definition) -> list[ast.AST]:
        """All nodes of a function's body."""
        cached = self._nodes.get(function)
        if cached is None:
            cached = self._nodes[function] = [n for s in function.body for n in ast.walk(s)]
        return cached

    @cached_property
    def _nodes(self) -> dict[Definition, list[ast.AST]]:
        return {}

    def is_method(self, function: Definition) -> bool:
        return class_of(self._source, function) is not None

    def is_called_often(self, function: Definition) -> bool:
        """Whether a method that runs per step or sample, or a function that a loop of the file calls, calls it."""
        calls = self._definitions.calls_of(function)
        callers = self._often.get(id(calls))
        if callers is None:
            callers = self._often[id(calls)] = {
                caller
                for caller in {place_of(self._source, call).function for call in calls}
                if isinstance(caller, DEFINITIONS) and not self.is_test(caller) and self._is_often(caller)
            }
        return bool(callers - {function})

    def _is_often(self, caller: Definition) -> bool:
        per_step = self.is_method(caller) and (
            caller.name in (*HOT_METHODS, "__next__") or not HOT_FIRST_WORDS.isdisjoint(self.words(caller)[:1])
        )
        return per_step or self._is_repeated(self._definitions.calls_of(caller))

    @cached_property
    def _often(self) -> dict[int, set[Definition]]:
        return {}  # as `_repeated`

    def called_names(self, function: Definition) -> set[str]:
        """The last parts of what a function calls, or hands to what it calls as the function to run."""
        found = set()
        for node in self.nodes(function):
            if isinstance(node, ast.Call):
                for called in (node.func, *node.args[:1]):
                    if isinstance(called, ast.Attribute):
                        found.add(called.attr if called.attr != "open" else "")
                    elif isinstance(called, ast.Name):
                        found.add(called.id)
        return found

    def opens_files(self, function: Definition) -> bool:
        """Whether a function calls Python's own `open`; what has a method of that name may be a stream."""
        return any(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "open" for n in self.nodes(function))

    def has_driver_loop(self, function: Definition) -> bool:
        """Whether a function's own body loops over epochs, steps or batches and logs, saves or evaluates on the way."""
        return any(isinstance(node, LOOPS) and _is_driver(node) for node in function.body) or any(
            isinstance(node, LOOPS) and _is_driver(node)
            for statement in function.body
            if isinstance(statement, (ast.With, ast.Try, ast.If))
            for node in ast.walk(statement)
        )


_DRIVER_NAMES = re.compile(r"epoch|iter|step|batch|episode|round|update|trial|seed|itr|gen", re.IGNORECASE)
# What a sweep goes through.
_FEW = 10
_SWEPT = frozenset("seed seeds config cfg conf setting settings trial fold run task env name size n lr method model "
                   "dataset case experiment k key algo dim repeat rep".split())  # fmt: skip
_DEVICE_LOOPS = frozenset({"scan", "while_loop", "fori_loop"})
_LOGGERS = frozenset({"print", "log", "info", "debug", "warning", "write", "scalar", "add_scalar", "set_description",
                      "set_postfix", "savefig", "imshow", "plot", "show", "save", "echo"})  # fmt: skip
_READERS = frozenset({"ArgumentParser", "parse_args", "OmegaConf", "load_dataset", "read_csv", "load_data", "tfds",
                      "makedirs", "mkdir", "SummaryWriter", "subplots", "figure", "savefig", "show", "basicConfig",
                      "perf_counter", "default_rng", "manual_seed", "DataLoader", "from_pretrained"})  # fmt: skip


def _is_driver(loop: ast.AST) -> bool:
    counted = loop.test if isinstance(loop, ast.While) else getattr(loop, "target", ast.Pass())
    names = (getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(counted))
    named = any(_DRIVER_NAMES.search(name) for name in names)
    ranged = any(
        isinstance(n, ast.Name) and n.id in ("trange", "tqdm") for n in ast.walk(getattr(loop, "iter", ast.Pass()))
    )
    return named or ranged


def _words_in(words: frozenset[str]) -> Callable[[Frequency, Definition], bool]:
    return lambda frequency, function: any(word in words for word in frequency.words(function))


def _first_word_in(words: frozenset[str]) -> Callable[[Frequency, Definition], bool]:
    return lambda frequency, function: frequency.words(function)[:1] != [] and frequency.words(function)[0] in words


def _last_word_in(words: frozenset[str]) -> Callable[[Frequency, Definition], bool]:
    return lambda frequency, function: frequency.words(function)[1:] != [] and frequency.words(function)[-1] in words


EVIDENCE = (
    Evidence("its name begins with a set-up word", -3, _first_word_in(SETUP_WORDS)),
    Evidence("its name ends with a set-up word", -3, _last_word_in(FINAL_SETUP_WORDS)),
    Evidence("its name begins with a word of conversion, or with that of a mesh", -4, _first_word_in(CONVERTING_WORDS)),
    Evidence("its name ends with `mesh`", -2, _last_word_in(frozenset({"mesh"}))),
    Evidence("its name begins with a word of evaluation, and it is a method", 4, lambda q, f: (
        q.is_method(f) and q.words(f)[:1] != [] and q.words(f)[0] in EVALUATING_WORDS)),
    Evidence("its name has a set-up word", -1, _words_in(SETUP_WORDS)),
    Evidence("its name moves parameters, a state or a model to its devices", -3, lambda q, f: (
        q.words(f)[0:1] != [] and q.words(f)[0] in MOVING_WORDS and q.words(f)[-1] in LASTING_WORDS)),
    Evidence("its name begins with a word of preparation", -2, _first_word_in(PREPARING_WORDS)),
    Evidence("its name begins with a driver's word", -1, _first_word_in(DRIVER_WORDS)),
    Evidence("it loops over epochs, steps or batches itself", -2, lambda q, f: q.has_driver_loop(f)),
    Evidence("it runs a whole loop on the device", -1, lambda q, f: bool(q.called_names(f) & _DEVICE_LOOPS)),
    Evidence("it prints, logs or plots", -1, lambda q, f: bool(q.called_names(f) & _LOGGERS)),
    Evidence("it reads arguments, files or data sets", -2, lambda q, f: (
        bool(q.called_names(f) & _READERS) or q.opens_files(f))),
    Evidence("it stands in a test module", -2, lambda q, f: q.in_test_module),
    Evidence("it is long", -1, lambda q, f: len(f.body) > 25),
    Evidence("it is short and returns a value", 1, lambda q, f: len(f.body) <= 6 and any(
        isinstance(n, ast.Return) and n.value is not None for n in q.nodes(f))),
    Evidence("its name has a word of a hot path", 1, _words_in(HOT_WORDS)),
    Evidence("it is a method that runs per step or sample", 3,
             lambda q, f: q.is_method(f) and f.name in HOT_METHODS),
    Evidence("such a method, or a function that a loop of the file calls, calls it", 4,
             lambda q, f: q.is_called_often(f)),
)  # fmt: skip


def is_sweep(loop: ast.AST) -> bool:
    """Whether a loop runs a few times: over what is spelled out or a table, or over seeds, settings or tasks."""
    generators = getattr(loop, "generators", None)
    bound = generators[0] if generators else loop
    target, iterable = getattr(bound, "target", None), getattr(bound, "iter", None)
    if target is None or iterable is None:
        return False
    if isinstance(iterable, (ast.Tuple, ast.List, ast.Dict, ast.Set)):
        return True
    if isinstance(iterable, ast.Call):
        numbers = [a.value for a in iterable.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
        if numbers and len(numbers) == len(iterable.args) and max(numbers) <= _FEW:
            return True
        if isinstance(iterable.func, ast.Attribute) and iterable.func.attr in ("items", "keys", "values"):
            return True
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    return any(word.lower() in _SWEPT for name in names for word in _WORD.findall(name))
