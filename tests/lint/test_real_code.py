"""Patterns of real JAX code: trainers, agents, caches, decorators, evaluation loops, libraries of named tuples."""

import pytest
from sources import Inline, found, inline

PATTERNS = inline("""\
== haiku apply of a local transform
import haiku as hk
import jax

def predict(params, x):
    net = hk.without_apply_rng(hk.transform(forward))
    return jax.jit(net.apply)(params, x)  # expect: JIT105
== haiku apply of a module's transform
import haiku as hk
import jax

NET = hk.without_apply_rng(hk.transform(forward))

def predict(params, x):
    return jax.jit(NET.apply)(params, x)  # expect: JIT107
== optax update of a module's optimizer
import jax
import optax

TX = optax.adam(1e-3)

def apply_grads(grads, state):
    return jax.jit(TX.update)(grads, state)  # expect: JIT107
== stax unpacked functions in a loop
import jax
from jax.example_libraries import stax

def main():
    init_fn, apply_fn = stax.serial(stax.Dense(3))
    for x in range(3):
        jax.jit(apply_fn)(x)
== train state creation
import jax
from flax.training.train_state import TrainState

def create_train_state(rng, model, tx):
    params = jax.jit(model.init)(rng, 3)
    return TrainState.create(apply_fn=jax.jit(model.apply), params=params, tx=tx)
== a class with lazily jitted functions in a dict comprehension
class Agent:
    def __init__(self, heads):
        self._heads = {name: jax.jit(fn) for name, fn in heads.items()}
        self._loss = {k: jax.jit(lambda p, k=k: p * k) for k in range(3)}
== a decorator class
class cached_jit:
    def __init__(self, fn):
        self.fn = fn
        self.jitted = None

    def __call__(self, *args):
        if self.jitted is None:
            self.jitted = jax.jit(self.fn)
        return self.jitted(*args)
== a decorator that wraps on each call
def fast(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return jax.jit(fn)(*args, **kwargs)  # expect: JIT107
    return wrapper
== a decorator that wraps a lambda on each call
def fast(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return jax.jit(lambda *a: fn(*a, **kwargs))(*args)  # expect: JIT101
    return wrapper
== a decorator with options
def fast(**options):
    def decorate(fn):
        jitted = jax.jit(fn, **options)
        @functools.wraps(fn)
        def wrapper(*args):
            return jitted(*args)
        return wrapper
    return decorate
== step of an environment wrapper
class Env:
    def __init__(self, env):
        self.env = env

    def reset(self, key):
        return jax.jit(self.env.reset)(key)

    def step(self, s, a):
        return jax.jit(self._step)(s, a)  # expect: JIT104

    def _step(self, s, a):
        return s + a
== step function closure handed to a loop helper
def fit(params, data):
    @jax.jit
    def step(p, b):
        return p + b
    def epoch(p):
        for b in data:
            p = step(p, b)
        return p
    for _ in range(3):
        params = epoch(params)
    return params
== evaluate with one pmap per call
def evaluate(params, batches):
    p_eval = jax.pmap(lambda p, b: p * b)
    return [p_eval(params, b) for b in batches]
== evaluate with one pmap per batch
def evaluate(params, batches):
    out = []
    for b in batches:
        out.append(jax.pmap(lambda p, b: p * b)(params, b))  # expect: JIT101
    return out
== jitted inside an if that returns
def rescale(x, mode):
    if mode == "a":
        return jax.jit(lambda v: v)(x)  # expect: JIT101
    elif mode == "b":
        fn = jax.jit(lambda v: -v)  # expect: JIT101
        return fn(x)
    return x
== a callback that keeps
def start(opt, x):
    loss = jax.jit(lambda p: p * x)
    return opt.minimize(lambda p: loss(p), x)
== iterative eigen-solver with matvec
import jax
from scipy.sparse.linalg import LinearOperator, eigsh

def lowest(matrix, n):
    mv = jax.jit(lambda v: matrix @ v)
    return eigsh(LinearOperator((n, n), matvec=mv), k=1)
== jit of vmap stored by a dataclass field default factory
import dataclasses
import jax

@dataclasses.dataclass
class Ops:
    step: object = dataclasses.field(default_factory=lambda: jax.jit(lambda v: v + 1))
    fast: object = jax.jit(lambda v: v)
== singledispatch
@functools.singledispatch
def norm(x):
    return x

@norm.register(list)
@jax.jit
def _(x):
    return x
== singledispatchmethod and jit in body
class Box:
    @functools.singledispatchmethod
    def norm(self, x):
        return jax.jit(lambda v: v)(x)  # expect: JIT101
== nested partial jit decorator on method of local class used at once
def hot(x):
    class Local:
        @partial(jax.jit, static_argnums=0)
        def go(self, v):
            return v
    return Local().go(x)
== jit in a generator of a factory
def make_all(n):
    yield from (jax.jit(lambda v, k=k: v * k) for k in range(n))
== passed by keyword dict
def start(n):
    kwargs = dict(step=jax.jit(lambda v: v), n=n)
    return Runner(**kwargs)
== kwargs literal
def start(n):
    return Runner(**{"step": jax.jit(lambda v: v)})
== star list
def start(n):
    return compose(*(jax.jit(lambda v: v) for _ in range(n)))
== reduce compose
def run_all(x):
    fns = [jax.jit(lambda v: v + 1), jax.jit(lambda v: v * 2)]
    return functools.reduce(lambda a, f: f(a), fns, x)
== zip of functions
def run_all(xs):
    fns = [jax.jit(lambda v: v + 1), jax.jit(lambda v: v * 2)]  # expect: JIT101 JIT101
    return [f(x) for f, x in zip(fns, xs)]
== enumerate of functions
def run_all(x):
    fns = [jax.jit(lambda v: v + 1)]  # expect: JIT101
    for i, f in enumerate(fns):
        x = f(x) + i
    return x
== items of a dict of functions
def run_all(x):
    fns = {"a": jax.jit(lambda v: v + 1)}  # expect: JIT101
    return {k: f(x) for k, f in fns.items()}
== items of a dict of functions in a loop of batches
def run_all(xs):
    fns = {"a": jax.jit(lambda v: v + 1)}
    out = {}
    for x in xs:
        for k, f in fns.items():
            out[k] = f(x)
    return out
== weak cache by id
_CACHE = {}
def get(fn):
    key = id(fn)
    if key in _CACHE:
        return _CACHE[key]
    _CACHE[key] = jitted = jax.jit(fn)
    return jitted
def hot(fn, x):
    return get(fn)(x)
== lru_cache on a nested maker made at module level
def _maker():
    @functools.lru_cache(None)
    def inner(k):
        return jax.jit(lambda v: v * k)
    return inner
get = _maker()
def hot(x):
    return get(3)(x)
== cache on a nested maker inside a hot function
def hot(x):
    @functools.lru_cache(None)
    def make(k):
        return jax.jit(lambda v: v * k)
    return make(3)(x)
== cachetools
import cachetools
import jax

@cachetools.cached(cache={})
def make(k):
    return jax.jit(lambda v: v * k)

def hot(x):
    return make(3)(x)
== a memoising decorator of this file
def memo(fn):
    known = {}

    @functools.wraps(fn)
    def wrapper(*key):
        if key not in known:
            known[key] = fn(*key)
        return known[key]

    return wrapper

@memo
def make(k):
    return jax.jit(lambda v: v * k)

def hot(x):
    return make(3)(x)
== a memoising decorator with options, found or made
def remember(size):
    def decorate(fn):
        known = collections.OrderedDict()

        def wrapper(*key):
            try:
                return known[key]
            except KeyError:
                made = fn(*key)
            known[key] = made
            return made

        return wrapper

    return decorate

@remember(size=8)
def make(k):
    return jax.jit(lambda v: v * k)

def hot(x):
    return make(3)(x)
== a memoising class
class Memo:
    def __init__(self, fn):
        self.fn = fn
        self.known = {}

    def __call__(self, *key):
        if key not in self.known:
            self.known[key] = self.fn(*key)
        return self.known[key]

@Memo
def make(k):
    return jax.jit(lambda v: v * k)

def hot(x):
    return make(3)(x)
== a decorator that runs its function once
def once(fn):
    done = False
    made = None

    def wrapper():
        nonlocal done, made
        if not done:
            made = fn()
            done = True
        return made

    return wrapper

@once
def make():
    return jax.jit(lambda v: v * 2)

def hot(x):
    return make()(x)
== a lazy attribute of an object
def lazy(fn):
    name = "_" + fn.__name__

    @property
    def wrapper(self):
        if not hasattr(self, name):
            setattr(self, name, fn(self))
        return getattr(self, name)

    return wrapper

class Box:
    @lazy
    def add(self):
        return jax.jit(lambda v: v + 1)

    def hot(self, x):
        return self.add(x)
== a decorator that hands on to functools.cache
def memo(fn):
    return functools.wraps(fn)(functools.lru_cache(maxsize=8)(fn))

@memo
def make(k):
    return jax.jit(lambda v: v * k)

def hot(x):
    return make(3)(x)
== a decorator that notes what its function took
def timed(fn):
    seconds = {}

    @functools.wraps(fn)
    def wrapper(*args):
        start = time.time()
        result = fn(*args)
        seconds[fn.__name__] = time.time() - start
        return result

    return wrapper

@timed
def quantity(x):
    return jax.jit(lambda v: v * 2)(x)  # expect: JIT101
== a decorator that keeps the last result for others to read
def noted(fn):
    def wrapper(*args):
        wrapper.last = fn(*args)
        return wrapper.last

    return wrapper

@noted
def quantity(x):
    return jax.jit(lambda v: v * 2)(x)  # expect: JIT101
== a decorator that collects results
def collected(fn):
    results = {}

    def wrapper(name, *args):
        results[name] = fn(*args)
        return results[name]

    return wrapper

@collected
def quantity(x):
    return jax.jit(lambda v: v * 2)(x)  # expect: JIT101
== joblib memory
import jax
from joblib import Memory
memory = Memory("x")

@memory.cache
def table(n):
    return jax.jit(lambda: n)()
== functools.cache applied by a call
def _make(k):
    return jax.jit(lambda v: v * k)
make = functools.lru_cache(maxsize=32)(_make)
def hot(x):
    return make(2)(x)
== module getattr pattern
_jitted = None
def _get():
    global _jitted
    if _jitted is not None:
        return _jitted
    _jitted = jax.jit(lambda v: v)
    return _jitted
def hot(x):
    return _get()(x)
== instance attribute by try
class Box:
    def step(self, x):
        try:
            fn = self._fn
        except AttributeError:
            fn = self._fn = jax.jit(lambda v: v)
        return fn(x)
== instance attribute via getattr default
class Box:
    def step(self, x):
        fn = getattr(self, "_fn", None)
        if fn is None:
            fn = jax.jit(lambda v: v)
            object.__setattr__(self, "_fn", fn)
        return fn(x)
== context var
def step(x):
    fn = VAR.get(None)
    if fn is None:
        fn = jax.jit(lambda v: v)
        VAR.set(fn)
    return fn(x)
== local jit alias by parameter default
def hot(x, jit=jax.jit):
    return jit(lambda v: v)(x)
== jit flag
def hot(x, use_jit=True):
    fn = lambda v: v + 1
    fn = jax.jit(fn) if use_jit else fn  # expect: JIT101
    return fn(x)
== jit flag with a stable function
def hot(x, use_jit=True):
    fn = stable
    if use_jit:
        fn = jax.jit(fn)  # expect: JIT107
    return fn(x)
== maybe_jit helper
def maybe_jit(fn, enabled):
    return jax.jit(fn) if enabled else fn
def hot(x):
    return maybe_jit(lambda v: v + 1, True)(x)  # expect: JIT106
== maybe_jit of a stable function
def maybe_jit(fn):
    return jax.jit(fn)
def hot(x):
    return maybe_jit(stable)(x)
== nested helper used once in main
def main():
    def init(key):
        return key
    state = jax.jit(init)(3)
    print(state)
== loop in main with hoisted lambda
def main():
    step = jax.jit(lambda v: v)
    x = 0
    while x < 10:
        x = step(x)
main()
== loop in module over configs, inner training
for lr in (0.1, 0.2):
    step = jax.jit(lambda v: v * lr)
    x = 1.0
    for _ in range(100):
        x = step(x)
== seeds loop in main
def run(seed):
    step = jax.jit(lambda v: v + seed)
    x = 0
    for _ in range(100):
        x = step(x)
    return x
def main():
    for seed in range(3):
        run(seed)
== jit in a thread worker
def worker(queue):
    fn = jax.jit(lambda v: v)
    while True:
        queue.put(fn(queue.get()))
== try except around fn(x) with fallback
def hot(x):
    try:
        return jax.jit(lambda v: v)(x)  # expect: JIT101
    except Exception:
        return jax.jit(lambda v: -v, backend="cpu")(x)  # expect: JIT101
== with mesh
def hot(x, mesh):
    with mesh:
        return jax.jit(lambda v: v, out_shardings=None)(x)  # expect: JIT101
== block_until_ready chain
def hot(x):
    return jax.jit(lambda v: v)(x).block_until_ready()  # expect: JIT101
== nested lambda arguments
def hot(x):
    return jax.jit(lambda f, v: v)(lambda q: q, x)  # expect: JIT101
== lower only for cost
def flops(fn, x):
    return jax.jit(fn).lower(x).compile().cost_analysis()["flops"]
== lower kept in list
class Bank:
    def warm(self, shapes):
        self.ready = [jax.jit(lambda v: v).lower(s).compile() for s in shapes]
== export
import jax
from jax import export

def save(fn, x):
    return export.export(jax.jit(lambda v: v))(x).serialize()
== custom vjp inside
def hot(x):
    @jax.custom_vjp
    def f(v):
        return v
    f.defvjp(lambda v: (v, None), lambda r, g: (g,))
    return jax.jit(f)(x)  # expect: JIT103
== equinox filter_jit decorated method in class
class Net(eqx.Module):
    @eqx.filter_jit
    def __call__(self, x):
        return x
== equinox filter_jit of a local partial with model
def hot(model, x):
    return eqx.filter_jit(lambda v: model(v))(x)  # expect: JIT101
== nnx jit of partial in a training loop
def main(model):
    for x in range(3):
        nnx.jit(lambda m: m(x))(model)  # expect: JIT101
== jit over method of a parameter's attribute
def hot(self, x):
    return jax.jit(self.model.apply)(x)
== super method
class A:
    def m(self, v):
        return v
class B(A):
    def hot(self, x):
        return jax.jit(super().m)(x)  # expect: JIT104
== method via class with self
class A:
    def m(self, v):
        return v
    def hot(self, x):
        return jax.jit(A.m, static_argnums=0)(self, x)  # expect: JIT107
== type(self).m
class A:
    @staticmethod
    def m(v):
        return v
    def hot(self, x):
        return jax.jit(type(self).m)(x)
== tuple of jits unpacked to self
class A:
    def __init__(self):
        (self.init, self.step), self.n = (jax.jit(lambda v: v), jax.jit(lambda v: v)), 3
== returning namedtuple
import collections
import jax
Ops = collections.namedtuple("Ops", "init step")
def make():
    return Ops(init=jax.jit(lambda v: v), step=jax.jit(lambda v: v))
def hot(x):
    return make().step(x)
== dataclass instance of this file built per call, its field called
import dataclasses
import jax
@dataclasses.dataclass
class Ops:
    step: object
def hot(x):
    ops = Ops(jax.jit(lambda v: v))  # expect: JIT101
    return ops.step(x)
== class with jit in init built per call
class Model:
    def __init__(self, k):
        self.step = jax.jit(lambda v: v * k)
def hot(x):
    return Model(3).step(x)
== conditional import in function
def hot(x):
    if x:
        from jax import jit
    else:
        from numba import jit
    return jit(lambda v: v)(x)  # expect: JIT101
== if TYPE_CHECKING import
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import jax
def hot(x):
    return x
== async generator
async def feed(xs):
    fn = jax.jit(lambda v: v)
    async for x in xs:
        yield fn(x)
== async with per request
async def handle(request):
    async with request as r:
        return jax.jit(lambda v: v)(r)  # expect: JIT101
== metrics per epoch in a trainer method
class Trainer:
    def fit(self, data):
        for epoch in range(3):
            metrics = jax.jit(lambda d: d.mean())(data)  # expect: JIT101
            print(epoch, metrics)
== summary in trainer
class Trainer:
    def log_metrics(self, m):
        return jax.tree.map(lambda v: jax.pmap(lambda t: lax.pmean(t, "i"), axis_name="i")(v), m)  # expect: JIT101
== sharding setup
def shard_params(params, shardings):
    return jax.jit(lambda p: p, out_shardings=shardings)(params)
== random init under jit
def init_model(rng, model):
    @jax.jit
    def init(r):
        return model.init(r)
    return init(rng)
== property with jit and cached
class Box:
    @property
    @functools.cache
    def fn(self):
        return jax.jit(lambda v: v)
    def step(self, x):
        return self.fn(x)
== walrus in comprehension
def hot(xs):
    return [y for x in xs if (y := jax.jit(lambda v: v)(x)) is not None]  # expect: JIT101
== starred assignment from call results
def hot(x):
    f, *rest = jax.jit(lambda v: v), 1, 2  # expect: JIT101
    return f(x)
== del and remake in loop
def main():
    for k in range(3):
        fn = jax.jit(lambda v: v * k)  # expect: JIT101
        fn(1.0)
        del fn
main()
== jit with donate in the update method
class Opt:
    def update(self, g, s):
        return jax.jit(lambda g, s: (g, s), donate_argnums=(1,))(g, s)  # expect: JIT101
== return await
async def hot(x):
    fn = jax.jit(lambda v: v)
    return await asyncio.to_thread(fn, x)
== executor map
def hot(pool, xs):
    return list(pool.map(jax.jit(lambda v: v), xs))
== multiprocess start
def hot(xs):
    import multiprocessing
    with multiprocessing.Pool() as pool:
        return pool.map(jax.jit(lambda v: v), xs)
== jax.lax.map of jitted
def hot(xs):
    return lax.map(jax.jit(lambda v: v), xs)
== scan over jitted body
def hot(xs):
    step = jax.jit(lambda c, x: (c + x, c))
    return lax.scan(step, 0.0, xs)
== jit whose lambda calls scan
def hot(xs):
    return jax.jit(lambda v: lax.scan(lambda c, x: (c + x, c), 0.0, v))(xs)  # expect: JIT101
== grad of closure inside jit target
def hot(params, batch):
    def loss(p):
        return (p * batch).sum()
    return jax.jit(jax.value_and_grad(loss))(params)  # expect: JIT105
== value_and_grad with jitted closure
def hot(params, batch):
    @jax.jit  # expect: JIT103
    def loss(p):
        return (p * batch).sum()
    return jax.value_and_grad(loss)(params)
""")


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", PATTERNS, ids=about)
def test_pattern(item: Inline) -> None:
    assert found(item) == item.expected
