"""Every private name of JAX, and of the libraries around it, that is read: since when it is there, what is lost without it.

Public is `jax.monitoring`: it tells of lowerings and compiles, and of traces at the top level. Which arguments, which
function and which place it does not tell, and a function that is first traced under an eager `grad` or inside another
trace sends no trace event at all. What is read beyond it stands in `TABLE`. A name that is missing makes the record poorer
and never wrong: what the verdict itself needs is listened for at the beginning (`probe`), and where it is not heard the
guard says that it cannot judge.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__tracebackhide__ = True


@dataclass(eq=False)
class Name:
    """A row of the table: what one thing is called, in one version of JAX or another.

    Attributes:
        texts: its names; in the order of looking, where one version may have several.
        where: what it is a name in.
        since: the versions of the library that have it; "0.4" stands for the oldest one that is supported.
        without: what is lost without it.
        needed: whether no verdict can be given without it.
    """

    texts: tuple[str, ...]
    where: str
    since: str
    without: str
    needed: bool = False

    def of(self, owner: Any, default: Any = None) -> Any:
        """The attribute of this name."""
        for text in self.texts:
            try:
                return getattr(owner, text)
            except Exception:
                continue
        return default

    def find(self) -> Any:
        """The member of the module that it is a name in, or None."""
        return self.of(module(self.where))

    def read(self, local: Mapping[str, Any], default: Any = None) -> Any:
        """The local variable (or the item) of this name."""
        for text in self.texts:
            if text in local:
                return local[text]
        return default

    def line(self) -> str:
        """The row in words."""
        lost = f"no verdict without it ({self.without})" if self.needed else f"lost without it: {self.without}"
        return f"{self} in {self.where}, JAX {self.since}: {lost}".replace("JAX equinox", "equinox").replace(
            "JAX flax", "flax"
        )

    def __contains__(self, text: object) -> bool:
        return text in self.texts

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __str__(self) -> str:
        return ", ".join(self.texts)


TABLE: list[Name] = []


def _row(texts: str, where: str, since: str, without: str, needed: bool = False) -> Name:
    name = Name(tuple(texts.split()), where, since, without, needed)
    TABLE.append(name)
    return name


UTIL = "jax._src.util"
CONFIG = "jax._src.config"

# --- listening
LISTENER = _row("test_event_listener", UTIL, "0.5", "starts of traces: each is seen when it ends", True)
ANNOUNCE = _row("test_event", UTIL, "0.5", "whether starts are still heard at the end of a guard")
BODIES_ANNOUNCED = _row(
    "test_event", "jax._src.interpreters.partial_eval", "0.9", "starts of bodies that are traced for no jit"
)
STARTS = _row("trace_to_jaxpr create_pjit_jaxpr", "test events", "0.5", "starts of traces", True)
ENDS = _row("_create_pjit_jaxpr", "frames below the trace event", "0.4 only", "traces", True)
PMAP_ENDS = _row("stage_parallel_callable", "frames below the trace event", "up to 0.8", "traces of a pmap")
LISTENERS = _row(
    "get_event_duration_listeners", "jax._src.monitoring", "0.4", "a quicker way to see whether events are heard"
)
TRACE_EVENT = _row(
    "/jax/core/compile/jaxpr_trace_duration", "jax.monitoring", "0.4", "traces on JAX 0.4; later the second net", True
)
LOWER_EVENT = _row("/jax/core/compile/jaxpr_to_mlir_module_duration", "jax.monitoring", "0.4", "seconds of lowering")
COMPILE_EVENT = _row("/jax/core/compile/backend_compile_duration", "jax.monitoring", "0.4", "compiles (`max_compiles`)")
COMPILE_CONSTANT = _row("BACKEND_COMPILE_EVENT", "jax._src.dispatch", "0.4", "whether compiles would be heard")

# --- frames
FUN = _row("fun", "locals of the frames of a trace", "0.4", "which function is traced", True)
ARGS = _row("args", "locals of the frames of a call", "0.4", "the arguments", True)
KWARGS = _row("kwargs", "locals of the frames of a call", "0.4", "the arguments", True)
CALLS = _row(
    "_trace_for_jit _infer_params _infer_params_impl _infer_params_internal infer_params cache_miss",
    "frames of a call", "0.4", "the arguments", True,
)  # fmt: skip
CALL_MISSED = _row(
    "cache_miss", "frames of a call", "0.4", "whether a trace was asked for by a call, or to be looked at"
)
CALL_FILES = _row(
    "pjit.py partial_eval.py profiler.py util.py", "files of JAX between a call and its trace", "0.4",
    "whether the user has jitted a function of JAX's own",
)  # fmt: skip
INSPECTIONS = _row(
    "jit_trace trace jit_lower lower jit_eval_shape eval_shape make_jaxpr_f", "frames of a call", "0.4",
    "whether a trace was asked for to be looked at",
)  # fmt: skip
JIT_INFO = _row("ji jit_info", "locals of the frames of a call", "0.4", "static arguments and options", True)
STATIC_ARGNUMS = _row("static_argnums", "jit_info", "0.4", "which arguments are static", True)
STATIC_ARGNAMES = _row("static_argnames", "jit_info", "0.4", "which arguments are static", True)
PMAP_CALL = _row("wrapped cache_miss", "frames of a pmap's call", "0.4", "the static arguments of a pmap")
PMAP_STATICS = _row("static_broadcasted_tuple", "closure of a pmap", "0.4", "the static arguments of a pmap")
PMAP_PARTS = _row("infer_params prepare_pmap_fn", "closure of a pmap", "0.5", "the static arguments of a pmap")
PMAP_FUN = _row("fun wrapped_fun", "closure of a pmap", "0.4", "the static arguments of a pmap")
SIGNATURE = _row("fun_signature", "jit_info", "0.4", "nothing: the signature is made again")
DEBUG_INFO = _row("debug_info", "locals of the frame of a trace", "0.5", "what it is traced for, other than jit")
TRACED_FOR = _row("traced_for", "debug_info", "0.5", "what it is traced for, other than jit")
AVALS = _row("in_avals", "locals of the frame of a trace", "0.9", "the arguments of bodies that are traced for no jit")
UNFLATTEN = _row("unflatten", "in_avals", "0.9", "the arguments of bodies that are traced for no jit")
FLAT = _row(
    "fun_takes_flat_tree_arg", "locals of the frame of a trace", "0.9", "arguments of a body that takes them flat"
)
FLAT_AVALS = _row(
    "in_type", "locals of the frame of a trace", "up to 0.8", "the arguments of the bodies of eager loops"
)
TRANSFORMED = _row("f", "WrappedFun", "up to 0.8", "which function is traced", True)
TRANSFORMS = _row("transforms", "WrappedFun", "up to 0.8", "which function is traced", True)
EAGER = _row("scan while cond", "names of jitted primitives", "up to 0.8", "the bodies of eager loops")
LOOPS = _row("control_flow", "files of JAX", "0.4", "the bodies of eager loops")
NO_OPTION = _row("AUTO", "names of defaults of jit_info", "0.4", "nothing: options that are defaults are shown, too")
TRANSPOSE = _row("transpose", "names of frames of a compile", "0.4", "whether a compile is that of a backward pass")

# --- caches and settings
CACHE = _row("cache", UTIL, "0.4", "whether caches were cleared with `jax.clear_caches()`")
ALL_CACHES = _row("_caches _weakref_lru_caches", UTIL, "0.4", "a cold start of functions that were inlined before")
EVICT = _row("evict_weakref evict_function", "a cache", "0.4", "a cold start of functions that were inlined before")
CLEAR = _row("clear_cache", "a jitted function", "0.4", "a cold start", True)
CACHE_SIZE = _row("_cache_size", "a jitted function", "0.4", "whether a function was warm before a guard cleared it")
CONTEXT = _row("trace_context", CONFIG, "0.4", "which setting of JAX made the difference")
DISABLE_JIT = _row("disable_jit", CONFIG, "0.4", "that jit is switched off inside a block")
THREAD_HOOK = _row("_update_thread_local_hook", "disable_jit", "0.4", "that jit is switched off inside a block")
GLOBAL_HOOK = _row("_update_global_hook", "disable_jit", "0.4", "that jit is switched off inside a block")
MISSED = _row(
    "cache_miss", "the state of a jitted function", "0.4", "a warm call in the wrap form that costs no Python of ours"
)

# --- words and places
EXPLAIN = _row("jax_explain_cache_misses", "jax.config", "0.4", "JAX's own words, under -vv")
EXPLAIN_HERE = _row("explain_cache_misses", CONFIG, "0.4", "whether a test has asked for the explanations itself")
EXPLAINED = _row("f", "locals of the function that explains", "0.4", "which function JAX's words are of")
EXCLUSION = _row(
    "register_exclusion",
    "jax._src.source_info_util",
    "0.4",
    "the user's places in JAX's own errors about a wrapped call",
)
BOUNDARY = _row("reraise_with_filtered_traceback", "functions of JAX", "0.4", "the kind of a transform, in a cause")
REMAT = _row("fun_remat", "functions of JAX", "0.4", "that a checkpoint has a cache of its own")
JIT_TYPES = _row("PjitFunction PmapFunction", "types of jaxlib", "0.4", "whether JAX's caches alone hold a function")
SETTINGS = _row("jax._src.config jax._src.mesh jax._src.core", "modules", "0.4", "names of JAX's settings")

# --- the libraries around JAX
HOLDERS = _row(
    "__wrapped__ _fun fun f func _f fn body_fun call f_jitted user_fun", "attributes and closures of wrappers", "0.4",
    "the user's function under a wrapper", True,
)  # fmt: skip
INNER_JITS = _row("jitted_fn _cached", "flax.nnx, equinox", "flax 0.10, equinox 0.11", "a cold start of their jits")
EQUINOX_CALL = _row("_call", "frames of equinox", "0.11", "the user's call of a filter_jit", True)
EQUINOX_WRAPPER = _row("jit_wrapper self", "locals of that frame", "0.11", "the user's call of a filter_jit", True)
EQUINOX_PMAP = _row("_vmap_pmap.py", "files of equinox", "0.11", "traces of a filter_pmap")
EQUINOX_PMAPS = _row("_filter_pmap_cache", "equinox._vmap_pmap", "0.11", "a cold start of a filter_pmap")
EQUINOX_SIGNATURE = _row("_signature", "a filter_jit", "0.11", "nothing: the signature is made again")


def module(name: str) -> Any:
    """A module by name, imported if need be; None where there is none."""
    if name not in sys.modules:
        try:
            __import__(name)
        except Exception:
            return None
    return sys.modules.get(name)


_lost: list[str] = []


def lose(line: str) -> None:
    """Note what this version of JAX does not tell."""
    if line not in _lost:
        _lost.append(line)


def lost() -> list[str]:
    """What this version of JAX does not tell, one line each."""
    return list(_lost)
