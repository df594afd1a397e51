"""The verdict: factories, places, and which code a place gets."""

import pytest
from sources import Inline, found, inline

FACTORIES = inline("""\
== a function's product is called and dropped
def make(k):
    return jax.jit(lambda v: v + k)


def hot(x):
    return make(3)(x)  # expect: JIT106
== through a name
def make(k):
    return jax.jit(lambda v: v + k)


def hot(x):
    add = make(3)  # expect: JIT106
    return add(x)
== of a decorated nested function
def make(k):
    @jax.jit
    def add(v):
        return v + k

    return add


def hot(x):
    return make(3)(x)  # expect: JIT106
== of a stable function, whose trace is found again
def make():
    return jax.jit(stable)


def hot(x):
    return make()(x)  # expect: JIT106
== a lambda
make = lambda k: jax.jit(lambda v: v + k)


def hot(x):
    return make(3)(x)  # expect: JIT106
== a nested factory
def hot(x):
    def make(k):
        return jax.jit(lambda v: v + k)

    return make(3)(x)  # expect: JIT106
== a factory of the enclosing function
def outer():
    def make(k):
        return jax.jit(lambda v: v + k)

    def hot(x):
        return make(3)(x)  # expect: JIT106

    return hot
== a method
class Box:
    def make(self, k):
        return jax.jit(lambda v: v + k)

    def hot(self, x):
        return self.make(3)(x)  # expect: JIT106
== a static method
class Box:
    @staticmethod
    def make(k):
        return jax.jit(lambda v: v + k)

    def hot(self, x):
        return self.make(3)(x) + Box.make(3)(x)  # expect: JIT106 JIT106
== a class method
class Box:
    @classmethod
    def make(cls, k):
        return jax.jit(lambda v: v + k)

    def hot(self, x):
        return self.make(3)(x)  # expect: JIT106
== an inherited method
class Base:
    def make(self, k):
        return jax.jit(lambda v: v + k)


class Box(Base):
    def hot(self, x):
        return self.make(3)(x)  # expect: JIT106
== a property
class Box:
    @property
    def add(self):
        return jax.jit(lambda v: v + 1)

    def hot(self, x):
        return self.add(x)  # expect: JIT106
== one item of a tuple
def make(k):
    up = jax.jit(lambda v: v + k)
    return up, k


def hot(x):
    up, k = make(3)  # expect: JIT106
    return up(x) * k
== one item of a tuple, by its index
def make(k):
    return k, jax.jit(lambda v: v + k)


def hot(x):
    return make(3)[1](x)  # expect: JIT106
== a tuple of which the other item is used
def make(k):
    return k, jax.jit(lambda v: v + k)


def hot(x):
    k, _ = make(3)
    return k * x
== a dictionary
def make(k):
    return {"add": jax.jit(lambda v: v + k)}


def hot(x):
    return make(3)["add"](x)  # expect: JIT106
== a factory of a factory
def make(k):
    return jax.jit(lambda v: v + k)


def remake(k):
    return make(k + 1)


def hot(x):
    return remake(3)(x)  # expect: JIT106
== a closure over a jit
def make(k):
    add = jax.jit(lambda v: v + k)

    def call(v):
        return add(v)

    return call


def hot(x):
    return make(3)(x)  # expect: JIT106
== in one branch
def make(k, fast):
    if fast:
        return jax.jit(lambda v: v + k)
    return lambda v: v + k


def hot(x):
    return make(3, True)(x)  # expect: JIT106
== in a loop of a script
def make(k):
    return jax.jit(lambda v: v + k)  # opt-in: JIT192


def main():
    for k in range(3):
        add = make(k)  # opt-in: JIT191
        add(1.0)


main()
== in a loop of a script that changes nothing of it
def make(k):
    return jax.jit(lambda v: v + k)


def main():
    for _ in range(3):
        add = make(2)  # expect: JIT106
        add(1.0)


main()
== called and dropped with the result of grad
def make(k):
    return jax.jit(lambda v: (v + k).sum())


def hot(x):
    return jax.grad(make(3))(x)  # expect: JIT106
== an async factory
async def make(k):
    return jax.jit(lambda v: v + k)


async def hot(x):
    add = await make(3)  # expect: JIT106
    return add(x)
== kept on self
def make(k):
    return jax.jit(lambda v: v + k)


class Box:
    def __init__(self):
        self.add = make(3)
== kept at module level
def make(k):
    return jax.jit(lambda v: v + k)


ADD = make(3)


def hot(x):
    return ADD(x)
== kept in a table
def make(k):
    return jax.jit(lambda v: v + k)


TABLE = {}


def hot(k, x):
    if k not in TABLE:
        TABLE[k] = make(k)
    return TABLE[k](x)
== used in a loop of the same call
def make(k):
    return jax.jit(lambda v: v + k)


def drive(xs):
    add = make(3)
    for x in xs:
        add(x)
== passed on
def make(k):
    return jax.jit(lambda v: v + k)


def start():
    Runner(make(3)).run()
== under functools.cache
@functools.cache
def make(k):
    return jax.jit(lambda v: v + k)


def hot(x):
    return make(3)(x)
== under lru_cache, called
@functools.lru_cache(maxsize=8)
def make(k):
    return jax.jit(lambda v: v + k)


def hot(x):
    return make(3)(x)
== inside the argument of a cache
make = functools.lru_cache(maxsize=None)(lambda k: jax.jit(lambda v: v + k))


def hot(x):
    return make(3)(x)
== cached by name later
def _make(k):
    return jax.jit(lambda v: v + k)


make = functools.cache(_make)


def hot(x):
    return make(3)(x)
== a cached property
class Box:
    @functools.cached_property
    def add(self):
        return jax.jit(lambda v: v + 1)

    def hot(self, x):
        return self.add(x)
== a property over cache
class Box:
    @property
    @functools.lru_cache
    def add(self):
        return jax.jit(lambda v: v + 1)

    def hot(self, x):
        return self.add(x)
== get or make
class Box:
    def make(self, k):
        if k not in self.table:
            self.table[k] = jax.jit(lambda v: v + k)
        return self.table[k]

    def hot(self, x):
        return self.make(3)(x)
== get or make through a local
TABLE = {}


def make(k):
    add = TABLE.get(k)
    if add is None:
        add = jax.jit(lambda v: v + k)
        TABLE[k] = add
    return add


def hot(x):
    return make(3)(x)
== get or make of a global
ADD = None


def make():
    global ADD
    if ADD is None:
        ADD = jax.jit(lambda v: v + 1)
    return ADD


def hot(x):
    return make()(x)
== a factory of another one's parameter
def make(fn):
    return jax.jit(fn)


def hot(x):
    return make(stable)(x)
== called in a test
def make(k):
    return jax.jit(lambda v: v + k)


def test_make():
    assert make(3)(1) == 4
== called in a script
def make(k):
    return jax.jit(lambda v: v + k)


if __name__ == "__main__":
    print(make(3)(1.0))
== of a tuple that a global or an inner function keeps
PAIR = None


def pair(k):
    return jax.jit(lambda v: v), jax.jit(lambda v: v * k)  # opt-in: JIT192 JIT192


def hot(x):
    global PAIR
    if PAIR is None:
        PAIR = pair(3)
    return PAIR[1](x)


def make(k):
    both = pair(k)
    alias = both

    def run(x):
        return alias[1](x)

    return run


def cold(x):
    both = pair(3)  # expect: JIT106
    return both[1](x)


def again(x):
    both = pair(3)  # expect: JIT106
    alias = both
    first, second = alias
    return second(x)
== of a named tuple or a dataclass, called and dropped
import dataclasses
from typing import Callable, NamedTuple

import jax


class Transform(NamedTuple):
    init: Callable
    update: Callable

    def both(self, x):
        return self.update(self.init(x))


@dataclasses.dataclass(frozen=True)
class Ops:
    name: str
    step: Callable = None


def sgd(rate):
    def update(g):
        return -rate * g

    return Transform(jax.jit(lambda p: p), update=jax.jit(update))  # opt-in: JIT192 JIT192


def make_ops(k):
    ops = Ops("scale", step=jax.jit(lambda v: v * k))  # opt-in: JIT192
    return ops


def hot(x):
    return make_ops(3).step(x)  # expect: JIT106


def update(g):
    tx = sgd(0.1)  # expect: JIT106
    return tx.update(g)


def train(p, batches):
    tx = sgd(0.1)  # opt-in: JIT191
    state = tx.init(p)
    for g in batches:
        state = tx.update(g)
    return state


def fit(p, batches):
    tx = sgd(0.1)  # opt-in: JIT191
    for g in batches:
        p = tx.update(g)
    return p
== of a named tuple or a dataclass, kept, passed on, or of which nothing is seen
import dataclasses
from typing import Callable, NamedTuple

import jax
from elsewhere import run


class Transform(NamedTuple):
    init: Callable
    update: Callable

    def both(self, x):
        return self.update(self.init(x))


@dataclasses.dataclass
class Ops:
    step: Callable

    def __post_init__(self):
        self.step = jax.jit(self.step)


def sgd(rate):
    return Transform(jax.jit(lambda p: p), jax.jit(lambda g: -rate * g))


def make_ops(k):
    return Ops(step=jax.jit(lambda v: v * k))


TX = sgd(0.1)


class Agent:
    def __init__(self):
        self.tx = sgd(0.1)
        self.update = sgd(0.2).update


def hot(x):
    return run(sgd(0.1), x)


def cold(x):
    return sgd(0.1).both(x)


def make_slow(x):
    return sgd(0.1)._replace(init=None)


class Keeper:
    def reset(self, p):
        tx = sgd(0.1)
        self.update = tx.update
        return tx.init(p)


def closed(x):
    tx = sgd(0.1)

    def step(g):
        return tx.update(g)

    return step


def named(x):
    return sgd(0.1).update.__name__, sgd(0.1).name
== of a function that loops over the jit
def make(k):
    @jax.jit  # opt-in: JIT192
    def step(v):
        return v * k

    def run(v, n):
        for _ in range(n):
            v = step(v)
        return v

    return run


def hot(x):
    return make(3)(x, 9)  # opt-in: JIT191
== of a function that loops over it by way of another one
def make(k):
    @jax.jit  # opt-in: JIT192
    def step(v):
        return v * k

    def epoch(v, n):
        for _ in range(n):
            v = step(v)
        return v

    def train(v):
        return epoch(v, 3)

    return train, epoch, step


def make_more(k):
    return make(k)


def hot(x):
    train, epoch, step = make(3)  # opt-in: JIT191
    return train(x) + epoch(x, 9)


def other(x):
    train, epoch, step = make_more(3)  # opt-in: JIT191
    return train(step(x))
== called inside a trace
def make(k):
    return jax.jit(lambda v: v + k)


@jax.jit
def outer(x):
    return make(3)(x)
== a decorator of the file that jits what it decorates
def fast(fn):
    return jax.jit(fn)


@fast
def add(v):
    return v + 1
== a decorator of the file that jits lazily
def fast(fn):
    jitted = None

    @functools.wraps(fn)
    def wrapper(*args):
        nonlocal jitted
        if jitted is None:
            jitted = jax.jit(fn)
        return jitted(*args)

    return wrapper
== a class that makes its jit in the constructor
class Adder:
    def __init__(self, k):
        self.add = jax.jit(lambda v: v + k)

    def __call__(self, v):
        return self.add(v)
""")

PLACES = inline("""\
== module level
ready = jax.jit(lambda v: v + 1)(1.0)
== a class body
class Box:
    ready = jax.jit(lambda v: v + 1)(1.0)
== a class body inside a function
def hot(x):
    class Box:
        ready = jax.jit(lambda v: v + 1)(x)  # expect: JIT101

    return Box.ready
== a loop at module level
for x in range(3):
    jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== a while loop at module level
x = 1.0
while x < 9:
    x = jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== a comprehension at module level
ready = [jax.jit(lambda v: v + 1)(x) for x in range(3)]  # expect: JIT101
== the first iterable of a comprehension at module level
ready = [x for x in jax.jit(lambda v: v + 1)(jnp.ones(3))]
== the condition of a comprehension
ready = [x for x in range(3) if jax.jit(lambda v: v > 1)(x)]  # expect: JIT101
== the second iterable of a comprehension
ready = [y for x in range(3) for y in jax.jit(lambda v: v + jnp.ones(3))(x)]  # expect: JIT101
== the iterable of a loop
for x in jax.jit(lambda v: v + 1)(jnp.ones(3)):
    print(x)
== the else of a loop
for x in range(3):
    print(x)
else:
    jax.jit(lambda v: v + 1)(x)
== a loop over a stable target
for x in range(3):
    jax.jit(stable)(x)  # expect: JIT107
== a loop over a stable target whose options change, in code that runs once
def main(arrays, places):
    for x, place in zip(arrays, places):
        jax.jit(stable, out_shardings=place)(x)
        jax.jit(stable, out_shardings=places)(x)  # expect: JIT107
        jax.jit(lambda v: v, out_shardings=place)(x)  # expect: JIT101
== a loop over a stable target whose options change, elsewhere
def hot(arrays, places):
    for x, place in zip(arrays, places):
        jax.jit(stable, out_shardings=place)(x)  # expect: JIT107
== a loop in a class body
class Box:
    for x in range(3):
        y = jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== a decorator's argument at module level
@register(jax.jit(lambda v: v + 1)(1.0))
def add(v):
    return v
== a default at module level
def add(v, start=jax.jit(lambda v: v + 1)(1.0)):
    return v + start
== a default of a nested function
def hot(x):
    def add(v, start=jax.jit(lambda v: v + 1)(x)):  # expect: JIT101
        return v + start

    return add(x)
== a loop inside jitted code
@jax.jit
def outer(x):
    for _ in range(3):
        x = jax.jit(lambda v: v + 1)(x)
    return x
== in code handed to a jit elsewhere
def outer(x):
    return jax.jit(lambda v: v + 1)(x)


fast = jax.jit(jax.vmap(outer))
== given to transforms in traced code only
def loss(params, x):
    return jax.jit(lambda q: (q * x).sum())(params)

def shift(x):
    return jax.jit(lambda v: v + 1)(x)

@jax.jit
def step(params, xs):
    grads = jax.grad(loss)(params, jax.vmap(shift)(xs))
    return jax.tree.map(lambda p, g: p - g, params, grads)
== in what another library's jit, or one that is not known, is given
import functools
import jax
from elsewhere import jit_if, mesh_jit

def first(x):
    return jax.jit(lambda v: v + 1)(x)

@mesh_jit
def second(x):
    return jax.jit(lambda v: v + 1)(x)

@jit_if(True)
def third(x):
    return jax.jit(lambda v: v + 1)(x)

class Box:
    def __init__(self, solver_jit):
        self.run = solver_jit(functools.partial(first, 3))
== in a method that overrides a jitted one
class Base:
    def __init__(self):
        self.step = jax.jit(self._step)

    def _step(self, x):
        raise NotImplementedError

class Middle(Base):
    pass

class Box(Middle):
    def _step(self, x):
        return jax.jit(lambda v: v + 1)(x)

class Other:
    def _step(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== in a method of an object that traced code hands to a transform
class Square:
    def loss(self, p):
        return jax.jit(lambda q: q * q)(p)

def train(make, p):
    algorithm = make()
    step = jax.jit(lambda q: q - jax.grad(algorithm.loss)(q))
    for _ in range(3):
        p = step(p)
    return p
== in what a library runs traced
import diffrax
import haiku as hk
import jax
import jaxopt
import numpyro
from numpyro.infer import MCMC, NUTS

def model(x):
    scale = jax.jit(lambda v: v * 2)
    numpyro.sample("y", numpyro.distributions.Normal(scale(x), 1.0))

def run(key, x):
    mcmc = MCMC(NUTS(model), num_warmup=10, num_samples=10)
    mcmc.run(key, x)

def net(x):
    return hk.Linear(3)(jax.jit(lambda v: v * 2)(x))

apply = hk.transform(net).apply

def solve(y):
    def field(t, y, args):
        return jax.jit(lambda v: -v)(y)
    return diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0, 1, 0.1, y)

def fit(x):
    def loss(p):
        return jax.jit(lambda q: q * q)(p)
    return jaxopt.LBFGS(fun=loss).run(x)
== given to a callback in traced code
def note(x):
    print(jax.jit(lambda v: v.sum())(x))  # expect: JIT101

@jax.jit
def step(x):
    jax.pure_callback(note, None, x)
    return x
== another object's method given to a transform in traced code
class Wrapper:
    def __init__(self, buffer):
        self.buffer = buffer
        self.sizes = jax.jit(lambda states: jax.vmap(self.buffer.size)(states))

    def size(self, state):
        return jax.pmap(lambda s: lax.psum(s, "x"), "x")(state)  # expect: JIT101
== given to transforms in traced code and elsewhere
def loss(params, x):
    return jax.jit(lambda q: (q * x).sum())(params)  # expect: JIT101

@jax.jit
def step(params, x):
    return jax.grad(loss)(params, x)

def slope(params, x):
    return jax.grad(loss)(params, x)
== in code handed to scan
def body(c, x):
    return jax.jit(lambda v: v + 1)(c), x


def run(xs):
    return lax.scan(body, 0.0, xs)
== in code under an eager vmap
def body(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101


def run(xs):
    return jax.vmap(body)(xs)
== in a helper that only jitted code calls
def helper(x):
    return jax.jit(lambda v: v + 1)(x)


@jax.jit
def outer(x):
    return helper(x)
== in a helper that jitted code and others call
def helper(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101


@jax.jit
def outer(x):
    return helper(x)


def hot(x):
    return helper(x)
== in a jitted method's helper
class Box:
    def helper(self, x):
        return jax.jit(lambda v: v + 1)(x)

    @partial(jax.jit, static_argnums=0)
    def step(self, x):
        return self.helper(x)
== in a linen module's call
import jax
from flax import linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return jax.jit(lambda v: v + 1)(x)
== under a cache
@functools.cache
def table(n):
    return jax.jit(lambda: jnp.arange(n) + 1)()
== in a cached property
class Box:
    @functools.cached_property
    def total(self):
        return jax.jit(lambda v: v.sum())(self.data)
== in a session fixture
import jax
import pytest


@pytest.fixture(scope="session")
def warm():
    return jax.jit(lambda v: v + 1)(1.0)
== inner jit of a jit is not judged twice
def hot(x):
    return jax.jit(jax.jit(lambda v: v + 1))(x)  # expect: JIT105
== in a lambda per leaf
def hot(tree):
    return jax.tree.map(lambda leaf: jax.jit(lambda v: v + 1)(leaf), tree)  # expect: JIT101
== in a lambda per leaf of a script
def main():
    tree = {"a": 1.0}
    return jax.tree.map(lambda leaf: jax.jit(lambda v: v + 1)(leaf), tree)  # expect: JIT101


main()
== in a function handed to tree.map
def main():
    def one(leaf):
        return jax.jit(lambda v: v + 1)(leaf)  # expect: JIT101

    return jax.tree.map(one, {"a": 1.0})


main()
== a multi-line call sits on its first line
def hot(x):
    return (
        jax.jit(  # expect: JIT101
            lambda v: v + 1,
        )(x)
    )
== a decorator sits on its own line
def hot(x):
    @partial(  # expect: JIT103
        jax.jit,
        static_argnums=1,
    )
    def add(v, n):
        return v + n

    return add(x, 2)
== once in main, in a branch of a condition
def main(fast):
    if fast:
        jax.jit(lambda v: v + 1)(1.0)


main(True)
== in a loop of main, under a try
def main():
    for x in range(3):
        try:
            jax.jit(lambda v: v + 1)(x)  # expect: JIT101
        except ValueError:
            pass
== a property that is read often
class Box:
    @property
    def total(self):
        return jax.jit(lambda v: v.sum())(self.data)  # expect: JIT101
== a lambda handed to a callback
def start(bus):
    bus.on("tick", lambda x: jax.jit(lambda v: v + 1)(x))  # expect: JIT101
""")


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", FACTORIES, ids=about)
def test_factory(item: Inline) -> None:
    assert found(item) == item.expected


@pytest.mark.parametrize("item", PLACES, ids=about)
def test_place(item: Inline) -> None:
    assert found(item) == item.expected
