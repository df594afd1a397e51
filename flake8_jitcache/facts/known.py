"""The dotted names that the rules know, in one place: jits, transforms, control flow, caches, entry points.

What each does to JAX's caches was measured; `JIT105`'s page says how.
"""

from __future__ import annotations

import re

JITS = frozenset(
    {
        "jax.jit",
        "jax.pmap",
        "jax.pjit",
        "jax.api.jit",
        "jax.api.pmap",
        "jax.experimental.pjit.pjit",
        "equinox.filter_jit",
        "equinox.filter_pmap",
        "flax.nnx.jit",
        "flax.nnx.pmap",
        "flax.experimental.nnx.jit",
        "haliax.named_jit",
        "haliax.jit.named_jit",
        "haliax.named_pjit",
        "elegy.jit",
        "treex.jit",
        "tjax.jit",
        "jax_metrics.jit",
        "haliax.partitioning.named_jit",
        "penzai.pz.variable_jit",
        "penzai.core.variables.variable_jit",
        "brainstate.transform.jit",
        "brainpy.math.jit",
        "brainpy.math.object_transform.jit",
    }
)
# What a project names so is likely to trace what it is given.
LIKE_JIT = re.compile(r"(\w*_)?[pn]?jit(ted)?(_\w*)?|(\w*_)?pmap(_\w*)?", re.IGNORECASE)
PMAPS = frozenset({"jax.pmap", "jax.api.pmap"})
# Jits that compare their function by what is in it (a pytree), and take everything that is no array as static.
EQUINOX_JITS = frozenset(
    {"equinox.filter_jit", "equinox.filter_pmap", "haliax.named_jit", "haliax.partitioning.named_jit"}
)
NNX_JITS = frozenset({"flax.nnx.jit", "flax.nnx.pmap", "flax.experimental.nnx.jit"})
# Jits that wrap what they are given in a new function: also one that stays the same is traced for each wrapper.
WRAPPING_JITS = NNX_JITS | {
    "penzai.pz.variable_jit",
    "penzai.core.variables.variable_jit",
    "brainstate.transform.jit",
    "brainpy.math.jit",
    "brainpy.math.object_transform.jit",
}

PARTIALS = frozenset({"functools.partial", "jax.tree_util.Partial", "functools.partialmethod"})

# Calls that take a function and give one that calls it: what becomes of the result becomes of the argument.
_JAX_TRANSFORMS = (
    "grad value_and_grad vmap jacfwd jacrev jacobian hessian checkpoint remat linearize vjp jvp named_call "
    "custom_jvp custom_vjp custom_gradient make_jaxpr eval_shape shard_map xmap pure_callback"
).split()
TRANSFORMS = frozenset(
    {f"jax.{name}" for name in _JAX_TRANSFORMS}
    | {
        "jax.ad_checkpoint.checkpoint",
        "jax.experimental.shard_map.shard_map",
        "jax.experimental.checkify.checkify",
        "jax.experimental.maps.xmap",
        "jax.numpy.vectorize",
        "jax.linear_transpose",
        "equinox.filter_grad",
        "equinox.filter_value_and_grad",
        "equinox.filter_vmap",
        "equinox.filter_checkpoint",
        "equinox.filter_jvp",
        "equinox.filter_vjp",
        "equinox.filter_closure_convert",
        "equinox.filter_shard_map",
        "flax.nnx.grad",
        "flax.nnx.value_and_grad",
        "flax.nnx.vmap",
        "flax.nnx.remat",
    }
)
# jit(checkpoint(f)) with a stable f is not traced again but compiled again.
CHECKPOINTS = frozenset({"jax.checkpoint", "jax.remat", "jax.ad_checkpoint.checkpoint"})
# Transforms that compare by what they wrap, so that equinox's own jit hits.
EQUINOX_STABLE = frozenset({"equinox.filter_grad", "equinox.filter_value_and_grad", "equinox.filter_vmap"})

# Transforms that are done with their function when they return: nothing of it lives on in the result.
IMMEDIATE = frozenset({"jax.eval_shape", "jax.make_jaxpr", "jax.vjp", "jax.jvp", "jax.linearize", "equinox.filter_jvp"})

# Loops that trace what they are given and keep the trace with it: {dotted name: indices of the function arguments}.
CONTROL_FLOW: dict[str, tuple[int, ...]] = {
    "jax.lax.scan": (0,),
    "jax.lax.map": (0,),
    "jax.lax.while_loop": (0, 1),
    "jax.lax.fori_loop": (2,),
    "jax.lax.cond": (1, 2),
    "jax.lax.switch": (1,),
    "jax.lax.associative_scan": (0,),
}
_NNX_LOOPS = {
    f"flax.{library}.{name}": positions
    for library in ("nnx", "experimental.nnx")
    for name, positions in (
        ("scan", (0,)), ("while_loop", (0, 1)), ("fori_loop", (2,)), ("cond", (1, 2)), ("switch", (1,)),
    )
}  # fmt: skip
CONTROL_FLOW |= _NNX_LOOPS
# Those that compile what they are given on each call that is not traced, where it is made anew.
EAGER_LOOPS = frozenset(CONTROL_FLOW) - {"jax.lax.associative_scan"}
# Those of them that run their function many times.
DEVICE_LOOPS = frozenset(
    {"jax.lax.scan", "jax.lax.map", "jax.lax.while_loop", "jax.lax.fori_loop", "flax.nnx.while_loop",
     "flax.nnx.fori_loop"}
)  # fmt: skip
CONTROL_FLOW_KEYWORDS = frozenset({"f", "body_fun", "cond_fun", "true_fun", "false_fun", "branches", "fn"})

# Makers of named tuples of functions: `net.apply` and `tx.update` are fields there, the same function each time.
_FIELD_MAKERS = re.compile(
    r"(haiku\.(transform|transform_with_state|without_apply_rng|without_state|multi_transform\w*)"
    r"|optax\.[a-z_.]+|blackjax\.[a-z_.]+|jax\.example_libraries\.optimizers\.\w+)"
)


def gives_fields(dotted: frozenset[str]) -> bool:
    """Whether a call gives a named tuple, so that its attributes are no bound methods."""
    return any(_FIELD_MAKERS.fullmatch(name) for name in dotted)


# Calls that run what they are given once per element, at once.
MAPS = frozenset(
    {
        "map",
        "filter",
        "sorted",
        "min",
        "max",
        "functools.reduce",
        "itertools.accumulate",
        "itertools.starmap",
        "jax.tree.map",
        "jax.tree_map",
        "jax.tree_util.tree_map",
        "jax.tree_util.tree_map_with_path",
        "jax.tree.map_with_path",
        "jax.tree.reduce",
        "jax.tree_util.tree_reduce",
        "numpy.apply_along_axis",
        "numpy.vectorize",
        "timeit.timeit",
        "timeit.repeat",
    }
)

# Calls in traced code under which a function is traced as well.
CALLERS = (TRANSFORMS - {"jax.pure_callback"}) | MAPS | PARTIALS

# Builtins and helpers that only look at what they are given.
LOOKERS = frozenset(
    {
        "bool",
        "callable",
        "dir",
        "hasattr",
        "hash",
        "id",
        "isinstance",
        "len",
        "print",
        "repr",
        "str",
        "type",
        "vars",
        "inspect.signature",
        "jax.block_until_ready",
        "jax.eval_shape",
        "jax.make_jaxpr",
        "equinox.filter_eval_shape",
        "equinox.filter_make_jaxpr",
        "jax.typeof",
    }
)

# Calls whose result is what they are given, or a thin shell around it.
SHELLS = frozenset({"functools.update_wrapper", "staticmethod", "classmethod", "property", "typing.cast"})

# Calls that look something up: of what they give, nothing is known.
GETTERS = frozenset({"getattr", "importlib.import_module", "operator.attrgetter", "next", "vars", "super", "globals"})
GETTER_METHODS = frozenset({"get", "pop", "setdefault", "popitem", "__getitem__", "__getattr__"})

ADDERS = frozenset({"add", "append", "appendleft", "extend", "insert", "setdefault", "update"})

# A function under one of these runs once per key. Names without a dot match the last part of any dotted name.
CACHE_DECORATORS = frozenset(
    {
        "functools.cache",
        "functools.lru_cache",
        "functools.cached_property",
        "cache",
        "lru_cache",
        "cached",
        "cached_property",
        "cachedmethod",
        "memoize",
        "memoized",
        "cache_resource",
        "weakref_lru_cache",
        "lazy_property",
        "reify",
    }
)

FIXTURES = frozenset({"pytest.fixture", "pytest_asyncio.fixture"})

# Decorators of programs' entry points, by dotted name; `*` as in the options.
ENTRY_POINTS = (
    "click.command",
    "click.group",
    "*.command",
    "*.callback",
    "prefect.flow",
    "hydra.main",
    "chz.entrypoint",
    "tyro.conf.*",
    "typer.*",
)
# Methods that make parameters or a state from nothing: jitted for one call, at set-up.
INITIALISERS = frozenset({"init", "init_with_output", "lazy_init", "init_weights", "init_params", "init_state"})

# Callees that start a program with the function they are given.
STARTERS = frozenset(
    {"absl.app.run", "app.run", "fire.Fire", "tyro.cli", "typer.run", "asyncio.run", "trio.run", "anyio.run",
     "chz.entrypoint", "chz.nested_entrypoint", "defopt.run", "clize.run", "wandb.agent", "ray.tune.run", "jax.app.run", "multiprocessing.Process", "tap.Tap", "plac.call"}
)  # fmt: skip

# Bases whose instances are pytrees or frozen, so that `self.x` cannot go stale.
STABLE_BASES = frozenset(
    {
        "equinox.Module",
        "flax.linen.Module",
        "flax.nnx.Module",
        "flax.struct.PyTreeNode",
        "typing.NamedTuple",
        "haiku.Module",
    }
)

# Modules whose methods run inside a transform of their library's, or in the jitted step of another file: so traced.
TRACED_BASES = frozenset(
    {
        "flax.linen.Module",
        "haiku.Module",
        "haiku._src.module.Module",
        "praxis.base_layer.BaseLayer",
    }
)
# Modules that are called in somebody's jitted step, most often of another file.
LAYER_BASES = frozenset(
    {"equinox.Module", "flax.nnx.Module", "flax.experimental.nnx.Module", "penzai.pz.nn.Layer", "zodiax.Base"}
)
# The first words of the names of methods that are called as they are, not in a step: they drive it.
DRIVING_METHODS = frozenset(
    "fit train run evaluate validate plot save load benchmark generate summarize print export main".split()
)

# The first words of the names of hooks that a base's jitted step calls.
STEP_WORDS = frozenset("tell ask step update sample act forward call apply loss".split())

# What traces the functions it is given, in other libraries and in JAX itself.
TRACING = re.compile(
    r"jax\.(experimental\.)?pallas\.(\w+\.)*\w+|jax\.(make_jaxpr|eval_shape|export\.\w+|experimental\.export\.\w+)"
    r"|haiku\.transform\w*|numpyro\.infer\.(?!Predictive)[A-Z]\w*|(diffrax|optimistix|jaxopt|jax\.experimental\.ode)\.[\w.]*"
    r"|equinox\.filter_(make_jaxpr|eval_shape)"
)

RECORD_DECORATORS = frozenset(
    {"dataclasses.dataclass", "flax.struct.dataclass", "chex.dataclass", "attrs.define", "attrs.frozen", "attr.s"}
)

# Mutable things, by the dotted name of what makes them.
NUMPY_ARRAYS = frozenset(
    f"numpy.{name}"
    for name in (
        "array asarray zeros ones empty full arange linspace eye zeros_like ones_like empty_like full_like copy "
        "random.rand random.randn random.normal random.uniform loadtxt load fromiter frombuffer concatenate stack"
    ).split()
)
JAX_ARRAYS = frozenset(
    f"jax.numpy.{name}"
    for name in "array asarray zeros ones empty full arange linspace eye zeros_like ones_like".split()
)
# References to arrays: read and written when the program runs, not when it is traced.
REFERENCES = frozenset(
    {
        "jax.new_ref",
        "jax.array_ref",
        "jax.empty_ref",
        "jax.mutable_array",
        "jax.ref.new_ref",
        "jax.ref.empty_ref",
        "jax.core.mutable_array",
        "jax.experimental.mutable_array",
        "jax.experimental.array_ref",
    }
)
MUTABLE_MAKERS = frozenset(
    {
        "list",
        "dict",
        "set",
        "bytearray",
        "collections.defaultdict",
        "collections.OrderedDict",
        "collections.Counter",
        "collections.deque",
    }
)
