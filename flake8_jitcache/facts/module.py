"""One module under analysis: the answers to the four questions, each made once and shared by the rules."""

from __future__ import annotations

import ast
from functools import cached_property

from flake8_jitcache.facts.caches import Caches
from flake8_jitcache.facts.definitions import Definitions
from flake8_jitcache.facts.fates import Fates
from flake8_jitcache.facts.flows import Flows
from flake8_jitcache.facts.frequency import Frequency
from flake8_jitcache.facts.iterations import Iterations
from flake8_jitcache.facts.jits import Jits
from flake8_jitcache.facts.names import Names
from flake8_jitcache.facts.places import functions_around
from flake8_jitcache.facts.scopes import Source
from flake8_jitcache.facts.signatures import Signatures
from flake8_jitcache.facts.targets import Targets
from flake8_jitcache.facts.traced import Traced
from flake8_jitcache.facts.uses import Uses
from flake8_jitcache.options import Options


class Module:
    """A parsed module and what the rules ask about it."""

    def __init__(self, tree: ast.Module, options: Options, filename: str = "") -> None:
        self.options = options
        self.filename = filename
        self.source = Source(tree)
        self.names = Names(self.source)
        self.jits = Jits(self.source, self.names, options)

    @cached_property
    def definitions(self) -> Definitions:
        return Definitions(self.source, self.names)

    @cached_property
    def caches(self) -> Caches:
        return Caches(self.source, self.names, self.options.cache_decorators)

    @cached_property
    def targets(self) -> Targets:
        return Targets(self.source, self.names, self.jits, self.definitions, self.caches)

    @cached_property
    def fates(self) -> Fates:
        return Fates(self.source, self.names, self.jits, self.definitions, self.caches)

    @cached_property
    def traced(self) -> Traced:
        return Traced(self.source, self.names, self.jits, self.definitions)

    @cached_property
    def uses(self) -> Uses:
        return Uses(self.source, self.names, self.jits, self.definitions)

    @cached_property
    def flows(self) -> Flows:
        return Flows(self.source, self.names, self.definitions)

    @cached_property
    def signatures(self) -> Signatures:
        return Signatures(self.source, self.names, self.jits, self.definitions)

    @cached_property
    def iterations(self) -> Iterations:
        return Iterations(self.source)

    def runs_for_free(self, call: ast.AST) -> bool:
        """Whether a call of a jitted function costs nothing that counts: inside a trace, in a test, or once per key."""
        around = functions_around(self.source, call)
        if any(f in self.traced.functions or self.caches.caches(f) for f in around):
            return True
        return bool(around) and self.frequency.is_test(around[0])

    @cached_property
    def frequency(self) -> Frequency:
        return Frequency(self.source, self.names, self.definitions, self.options, self.filename)
