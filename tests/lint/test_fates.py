"""Question 4: what becomes of a jitted function."""

import pytest
from sources import Inline, found, inline

DROPPED = inline("""\
== called where it is made
def hot(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== called through a name
def hot(x):
    add = jax.jit(lambda v: v + 1)  # expect: JIT101
    return add(x)
== called through one of two names
def hot(x):
    first = second = jax.jit(lambda v: v + 1)  # expect: JIT101
    return second(x)
== called through an alias of the name
def hot(x):
    add = jax.jit(lambda v: v + 1)  # expect: JIT101
    again = add
    return again(x)
== two in one unpacked assignment
def hot(x):
    up, down = jax.jit(lambda v: v + 1), jax.jit(lambda v: v - 1)  # expect: JIT101 JIT101
    return up(x) + down(x)
== one of an unpacked assignment
def hot(x):
    up, by = jax.jit(lambda v: v + 1), 3  # expect: JIT101
    return up(x) * by
== a conditional expression
def hot(x, fast):
    add = jax.jit(lambda v: v + 1) if fast else (lambda v: v + 1)  # expect: JIT101
    return add(x)
== the conditional expression is called
def hot(x, fast):
    return (jax.jit(lambda v: v + 1) if fast else stable)(x)  # expect: JIT101
== in the body of a lambda
hot = lambda x: jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== called by a nested function that is called once
def hot(x):
    add = jax.jit(lambda v: v + 1)  # expect: JIT101

    def twice():
        return add(add(x))

    return twice()
== called by a lambda that is called once
def hot(x):
    add = jax.jit(lambda v: v + 1)  # expect: JIT101
    more = lambda v: add(v) + 1
    return more(x)
== the default of a nested function that is called
def hot(x):
    def inner(v, add=jax.jit(lambda v: v + 1)):  # expect: JIT101
        return add(v)

    return inner(x)
== in a local dictionary
def hot(x):
    table = {}
    table["add"] = jax.jit(lambda v: v + 1)  # expect: JIT101
    return table["add"](x)
== in a dictionary display
def hot(x, name):
    table = {
        "add": jax.jit(lambda v: v + 1),  # expect: JIT101
        "sub": jax.jit(lambda v: v - 1),  # expect: JIT101
    }
    return table[name](x)
== one call for each function of a local list
def hot(x):
    for stage in [
        jax.jit(lambda v: v + 1),  # expect: JIT101
        jax.jit(lambda v: v * 2),  # expect: JIT101
    ]:
        x = stage(x)
    return x
== collected in a loop, then called once each
def hot(x, gains):
    stages = []
    for gain in gains:
        stages.append(jax.jit(lambda v, gain=gain: v * gain))  # expect: JIT101
    for stage in stages:
        x = stage(x)
    return x
== called and deleted
def hot(x):
    add = jax.jit(lambda v: v + 1)  # expect: JIT101
    y = add(x)
    del add
    return y
== called, its cache cleared
def hot(x):
    add = jax.jit(lambda v: v + 1)  # expect: JIT101
    y = jax.block_until_ready(add(x))
    add.clear_cache()
    return y
== bound in a try, called after it
def hot(x):
    try:
        add = jax.jit(lambda v: v + 1)  # expect: JIT101
    finally:
        print("ready")
    return add(x)
== bound in an except handler
def hot(x):
    try:
        add = find_add()
    except KeyError:
        add = jax.jit(lambda v: v + 1)  # expect: JIT101
    return add(x)
== bound by a walrus in a condition
def hot(x):
    if (add := jax.jit(lambda v: v + 1)) is not None:  # expect: JIT101
        x = add(x)
    return x
== called in a formatted string
def hot(x):
    return f"{jax.jit(lambda v: v.sum())(x):.3f}"  # expect: JIT101
== called in a with header
def hot(x):
    with scope(jax.jit(lambda v: v.sum())(x)):  # expect: JIT101
        return x
== called in a recursion
def hot(x, n):
    return hot(jax.jit(lambda v: v + 1)(x), n - 1) if n else x  # expect: JIT101
== given to a transform that is called
def hot(x):
    slope = jax.grad(jax.jit(lambda v: (v * v).sum()))  # expect: JIT101
    return slope(x)
== given to a transform called at once
def hot(x):
    return jax.vmap(jax.jit(lambda v: v + 1))(x)  # expect: JIT101
== given to vjp
def hot(x):
    y, back = jax.vjp(jax.jit(lambda v: v + 1), x)  # expect: JIT101
    return back(y)
== given to a partial that is called
def hot(x):
    return partial(jax.jit(lambda k, v: v * k), 2)(x)  # expect: JIT101
== given to a helper of the file that calls it
def apply(fn, x):
    return fn(x)


def hot(x):
    return apply(jax.jit(lambda v: v + 1), x)  # expect: JIT101
== given by keyword to a helper of the file that calls it
def apply(x, *, fn):
    return fn(x)


def hot(x):
    return apply(x, fn=jax.jit(lambda v: v + 1))  # expect: JIT101
== wrapped by functools.wraps and called
def hot(x):
    add = functools.wraps(stable)(jax.jit(lambda v: v + 1))  # expect: JIT101
    return add(x)
== compiled ahead of time and dropped
def hot(x):
    ready = jax.jit(lambda v: v + 1).lower(x).compile()  # expect: JIT101
    return ready(x)
== compiled ahead of time in steps and dropped
def hot(x):
    jitted = jax.jit(lambda v: v + 1)  # expect: JIT101
    lowered = jitted.lower(x)
    ready = lowered.compile()
    return ready(x)
== called with starred arguments
def hot(*parts, **options):
    return jax.jit(lambda *p, **o: sum(p))(*parts, **options)  # expect: JIT101
== made in one branch, called after both
def hot(x, fast):
    if fast:
        add = jax.jit(lambda v: v + 1)  # expect: JIT101
    else:
        add = jax.jit(lambda v: v - 1)  # expect: JIT101
    return add(x)
== passed through a dictionary's get
def hot(x, name):
    return {"add": jax.jit(lambda v: v + 1)}.get(name)(x)  # expect: JIT101
== awaited result of a call
async def hot(x):
    return await send(jax.jit(lambda v: v + 1)(x))  # expect: JIT101
== called by a generator once for each item that made it
def hot(xs):
    for x in xs:
        yield jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== called by a nested class's method would be kept, here at once
class Box:
    def hot(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== decorated nested function under a transform
def hot(x):
    @jax.vmap
    @jax.jit  # expect: JIT103
    def add(v):
        return v + 1

    return add(x)
== decorated nested function over a transform
def hot(x):
    @jax.jit  # expect: JIT103
    @jax.vmap
    def add(v):
        return v + 1

    return add(x)
== the name is rebound after the call
def hot(x):
    add = jax.jit(lambda v: v + 1)  # expect: JIT101
    x = add(x)
    add = None
    return x, add
== rebound to its own jit
def hot(x):
    def add(v):
        return v + 1

    add = jax.jit(add)  # expect: JIT103
    return add(x)
== a list that is indexed
def hot(x):
    stages = [jax.jit(lambda v: v + 1)]  # expect: JIT101
    return stages[0](x)
== called in the test of a condition
def hot(x):
    if jax.jit(lambda v: v.sum())(x) > 0:  # expect: JIT101
        return x
    return -x
== called in an assertion
def hot(x):
    assert jax.jit(lambda v: (v > 0).all())(x)  # expect: JIT101
    return x
== called in a subscript
def hot(x, table):
    return table[jax.jit(lambda v: v.argmax())(x)]  # expect: JIT101
== called for an augmented assignment
def hot(self, x):
    self.total += jax.jit(lambda v: v.sum())(x)  # expect: JIT101
== called as the argument of a kept call
def hot(self, x):
    self.keep(jax.jit(lambda v: v.sum())(x))  # expect: JIT101
== called for a yield
def hot(x):
    yield jax.jit(lambda v: v.sum())(x)  # expect: JIT101
== called with the call written as a method
def hot(x):
    return jax.jit(lambda v: v.sum()).__call__(x)  # expect: JIT101
""")

KEPT = inline("""\
== returned
def make(k):
    return jax.jit(lambda v: v + k)  # opt-in: JIT192
== returned by a lambda
make = lambda k: jax.jit(lambda v: v + k)  # opt-in: JIT192
== called and returned
def make(x):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
    return add, add(x)
== called and returned in a dictionary
def make(x):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
    return {"add": add, "first": add(x)}
== returned by one branch, called by the other
def make(x=None):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
    return add if x is None else add(x)
== returned from a comprehension
def make(gains):
    return [jax.jit(lambda v, g=g: v * g) for g in gains]  # opt-in: JIT192
== returned in a set, a tuple of tuples
def make(k):
    return {jax.jit(lambda v: v + k)}, ((jax.jit(lambda v: v - k), 1), 2)  # opt-in: JIT192 JIT192
== yielded
def make(gains):
    for gain in gains:
        yield jax.jit(lambda v: v * gain)  # opt-in: JIT192
== yielded by a context manager
import contextlib
import jax


@contextlib.contextmanager
def adding(k):
    add = jax.jit(lambda v: v + k)  # opt-in: JIT192
    yield add
== on self under two names
class Box:
    def build(self):
        self.first = self.second = jax.jit(lambda v: v + 1)  # opt-in: JIT192
== on self and called through a local
class Box:
    def build(self, x):
        self.add = add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
        return add(x)
== on self by an unpacked assignment
class Box:
    def build(self):
        self.init, self.step = jax.jit(lambda v: v), jax.jit(lambda v: v + 1)  # opt-in: JIT192 JIT192
== on self by annotation
class Box:
    def build(self):
        self.add: object = jax.jit(lambda v: v + 1)  # opt-in: JIT192
== on the class
class Box:
    @classmethod
    def build(cls):
        cls.add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
== on the class through type(self)
class Box:
    def build(self):
        type(self).add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
== on a module
import jax
import shared


def build():
    shared.add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
== by setattr
class Box:
    def build(self):
        setattr(self, "add", jax.jit(lambda v: v + 1))  # opt-in: JIT192
== in the dictionary of an object
class Box:
    def build(self):
        self.__dict__["add"] = jax.jit(lambda v: v + 1)  # opt-in: JIT192
== in a global
ADD = None


def build():
    global ADD
    ADD = jax.jit(lambda v: v + 1)  # opt-in: JIT192
== in a global as a decorated function
def build():
    global add

    @jax.jit  # opt-in: JIT192
    def add(v):
        return v + 1
== in a nonlocal
def outer():
    add = None

    def build():
        nonlocal add
        add = jax.jit(lambda v: v + 1)  # opt-in: JIT192

    return build
== in a global dictionary
TABLE = {}


def hot(key, x):
    if key not in TABLE:
        TABLE[key] = jax.jit(lambda v: v + key)  # opt-in: JIT192
    return TABLE[key](x)
== in a global dictionary, when the look-up fails
TABLE = {}


def hot(key, x):
    try:
        return TABLE[key](x)
    except KeyError:
        add = TABLE[key] = jax.jit(lambda v: v + key)  # opt-in: JIT192
        return add(x)
== in a global dictionary by setdefault
TABLE = {}


def hot(key, x):
    return TABLE.setdefault(key, jax.jit(lambda v: v + key))(x)  # opt-in: JIT192
== in a dictionary of the object, chained
class Box:
    def hot(self, key, x):
        add = self.table.get(key)
        if add is None:
            add = self.table[key] = jax.jit(lambda v: v + key)  # opt-in: JIT192
        return add(x)
== in a dictionary that is a parameter
def fill(table, key):
    table[key] = jax.jit(lambda v: v + key)  # opt-in: JIT192
== in a default dictionary
def hot(key, x, table={}):
    if key not in table:
        table[key] = jax.jit(lambda v: v + key)  # opt-in: JIT192
    return table[key](x)
== lazily on self
class Box:
    def hot(self, x):
        if self._add is None:
            self._add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
        return self._add(x)
== lazily on self, by or
class Box:
    def hot(self, x):
        self._add = self._add or jax.jit(lambda v: v + 1)  # opt-in: JIT192
        return self._add(x)
== lazily on self through a local
class Box:
    def hot(self, x):
        add = self._add
        if add is None:
            add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
            self._add = add
        return add(x)
== lazily as an attribute of the function
def hot(x):
    if not hasattr(hot, "add"):
        hot.add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
    return hot.add(x)
== in a list of the object
class Box:
    def build(self):
        self.stages.append(jax.jit(lambda v: v + 1))  # opt-in: JIT192
        self.stages += [jax.jit(lambda v: v - 1)]  # opt-in: JIT192
== a closure that is returned
def make(k):
    add = jax.jit(lambda v: v + k)  # opt-in: JIT192

    def call(v):
        return add(v)

    return call
== a closure that is kept
class Box:
    def build(self, k):
        add = jax.jit(lambda v: v + k)  # opt-in: JIT192
        self.call = lambda v: add(v)
== a closure of a closure
def make(k):
    add = jax.jit(lambda v: v + k)  # opt-in: JIT192

    def outer():
        def inner(v):
            return add(v)

        return inner

    return outer
== the default of a nested function that is returned
def make(k):
    def call(v, add=jax.jit(lambda v: v + k)):  # opt-in: JIT192
        return add(v)

    return call
== the default of a lambda that is returned
def make(k):
    return lambda v, add=jax.jit(lambda v: v + k): add(v)  # opt-in: JIT192
== a transform of it is returned
def make(k):
    return jax.grad(jax.jit(lambda v: (v + k).sum()))  # opt-in: JIT192
== a partial of it is kept
class Box:
    def build(self, k):
        self.add = partial(jax.jit(lambda k, v: v + k), k)  # opt-in: JIT192
== compiled ahead of time and kept
class Box:
    def build(self, x):
        self.add = jax.jit(lambda v: v + 1).lower(x).compile()  # opt-in: JIT192
== compiled ahead of time and returned
def build(x):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT192
    return add.lower(x).compile()
== used by the methods of a class that is returned
def make(k):
    add = jax.jit(lambda v: v + k)  # opt-in: JIT192

    class Adder:
        def __call__(self, v):
            return add(v)

    return Adder
== an attribute of a class that is returned
def make(k):
    class Adder:
        add = staticmethod(jax.jit(lambda v: v + k))  # opt-in: JIT192

    return Adder
== a decorated method of a class that is returned
def make(k):
    class Adder:
        @jax.jit  # opt-in: JIT192
        def add(self, v):
            return v + k

    return Adder
== a helper of the file keeps what it is given
KNOWN = []


def keep(fn):
    KNOWN.append(fn)
    return fn


def build(k):
    add = keep(jax.jit(lambda v: v + k))  # opt-in: JIT192
    return add(1.0)
""")

PASSED = inline("""\
== to a constructor
def start(k):
    runner = Runner(step=jax.jit(lambda v: v + k))
    runner.run()
== to a constructor's first argument
def start(k):
    return Runner(jax.jit(lambda v: v + k)).run()
== to a class of the file
class Runner:
    def __init__(self, step):
        self.step = step


def start(k, x):
    runner = Runner(jax.jit(lambda v: v + k))
    return runner.step(x)
== to a registry
def start(registry, k):
    registry.register("add", jax.jit(lambda v: v + k))
== to a decorator factory
def start(registry, k):
    registry.register("add")(jax.jit(lambda v: v + k))
== under a decorator that nobody knows
def start(registry):
    @registry.register
    @jax.jit
    def add(v):
        return v + 1
== to a thread
import threading
import jax


def start(k):
    threading.Thread(target=jax.jit(lambda v: v + k)).start()
== to an executor
def start(pool, x):
    return pool.submit(jax.jit(lambda v: v + 1), x)
== through a starred list
def start(x):
    return combine(*[jax.jit(lambda v: v + 1)], x)
== to the starred parameter of a function of the file
def combine(*stages):
    return stages


def start(x):
    return combine(jax.jit(lambda v: v + 1), x)
== to a dataclass
def start(config, k):
    ops = replace(config, step=jax.jit(lambda v: v + k))
    return ops.step(1.0)
== a closure to a constructor
def start(k):
    add = jax.jit(lambda v: v + k)

    def on_frame(v):
        return add(v)

    Runner(on_frame).run()
== a closure under a decorator that nobody knows
def start(app, k):
    add = jax.jit(lambda v: v + k)

    @app.route("/")
    def serve(v):
        return add(v)
== raised
def start(k):
    raise Done(jax.jit(lambda v: v + k))
""")

USED_OFTEN = inline("""\
== in a for loop
def drive(xs):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
    out = []
    for x in xs:
        out.append(add(x))
    return out
== in a while loop
def drive(x):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
    while x.sum() < 9:
        x = add(x)
    return x
== in the test of a while loop
def drive(x):
    small = jax.jit(lambda v: v.sum() < 9)  # opt-in: JIT191
    while small(x):
        x = x + 1
    return x
== in a comprehension
def drive(xs):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
    return [add(x) for x in xs]
== in a generator expression
def drive(xs):
    good = jax.jit(lambda v: (v > 0).all())  # opt-in: JIT191
    return any(good(x) for x in xs)
== in an async loop
async def drive(xs):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
    return [add(x) async for x in xs]
== in a loop of a closure
def drive(xs):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191

    def run():
        return [add(x) for x in xs]

    return run()
== in a closure that a loop calls
def drive(xs):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191

    def run(x):
        return add(x)

    for x in xs:
        run(x)
== in a closure that calls itself
def drive(tree, x):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191

    def down(node, x):
        return x if node is None else down(node.next, add(x))

    return down(tree, x)
== by map
def drive(xs):
    return list(map(jax.jit(lambda v: v + 1), xs))  # opt-in: JIT191
== by tree.map
def drive(tree):
    return jax.tree.map(jax.jit(lambda v: v + 1), tree)  # opt-in: JIT191
== as a sort key
def drive(rows):
    return sorted(rows, key=jax.jit(lambda r: r.sum()))  # opt-in: JIT191
== by reduce
def drive(rows):
    return functools.reduce(jax.jit(lambda a, b: a + b), rows)  # opt-in: JIT191
== by a solver
import jax
from scipy import optimize


def solve(x):
    return optimize.minimize(jax.jit(lambda v: (v * v).sum()), x)  # opt-in: JIT191
== by a solver through a closure
import jax
from scipy.optimize import minimize


def solve(x):
    loss = jax.jit(lambda v: (v * v).sum())  # opt-in: JIT191
    return minimize(lambda v: float(loss(v)), x)
== by a helper of the file that loops
def repeat(fn, x):
    for _ in range(9):
        x = fn(x)
    return x


def drive(x):
    return repeat(jax.jit(lambda v: v + 1), x)  # opt-in: JIT191
== by a helper of the file that is called in a loop
def apply(fn, x):
    return fn(x)


def drive(xs):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
    return [apply(add, x) for x in xs]
== by an inner loop
def drive(gains, xs):
    for gain in gains:
        add = jax.jit(lambda v: v * gain)  # opt-in: JIT191
        for x in xs:
            add(x)
== by the other iterations of its loop
def drive(xs):
    add = None
    for x in xs:
        if add is None:
            add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
        x = add(x)
== by the other iterations, made in the first
def drive(xs):
    for i, x in enumerate(xs):
        if i == 0:
            add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
        x = add(x)
== a transform of it in a loop
def drive(xs):
    slope = jax.grad(jax.jit(lambda v: (v * v).sum()))  # opt-in: JIT191
    return [slope(x) for x in xs]
== a compiled executable in a loop
def drive(xs):
    add = jax.jit(lambda v: v + 1).lower(xs[0]).compile()  # opt-in: JIT191
    return [add(x) for x in xs]
== one of two, in the loop of a nested loop
def drive(x):
    stages = [jax.jit(lambda v: v + 1), jax.jit(lambda v: v * 2)]  # opt-in: JIT191 JIT191
    for _ in range(9):
        for stage in stages:
            x = stage(x)
    return x
== a decorated function in a loop
def drive(x):
    @jax.jit  # opt-in: JIT191
    def add(v):
        return v + 1

    for _ in range(9):
        x = add(x)
    return x
== by a device loop
def drive(x):
    add = jax.jit(lambda i, v: v + 1)  # opt-in: JIT191
    return lax.fori_loop(0, 9, add, x)
== by timeit
import timeit
import jax


def measure_call(x):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
    return timeit.timeit(lambda: add(x), number=9)
== by a generator's consumer
def drive(xs):
    add = jax.jit(lambda v: v + 1)  # opt-in: JIT191
    for x in xs:
        yield add(x)
""")

LOOKED_AT = inline("""\
== printed
def show():
    print(jax.jit(lambda v: v + 1))
== never called
def unused():
    add = jax.jit(lambda v: v + 1)
    del add
== an expression statement
def unused():
    jax.jit(lambda v: v + 1)
== compared
def same(fn):
    return jax.jit(lambda v: v) is fn
== only lowered to text
def show(x):
    return jax.jit(lambda v: v + 1).lower(x).as_text()
== only its shape
def shape(x):
    return jax.jit(lambda v: v + 1).eval_shape(x)
== only traced
def jaxpr(x):
    return jax.jit(lambda v: v + 1).trace(x).jaxpr
== only its cost
def cost(x):
    return jax.jit(lambda v: v + 1).lower(x).compile().cost_analysis()
== only its shape, by a transform
def shape(x):
    return jax.eval_shape(jax.jit(lambda v: v + 1), x)
== only its jaxpr
def text(x):
    return str(jax.make_jaxpr(jax.jit(lambda v: v + 1))(x))
== only tested for an attribute
def has():
    return hasattr(jax.jit(lambda v: v + 1), "lower")
""")


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", DROPPED, ids=about)
def test_dropped(item: Inline) -> None:
    assert item.expected
    assert found(item) == item.expected


@pytest.mark.parametrize("item", KEPT, ids=about)
def test_kept(item: Inline) -> None:
    assert found(item) == item.expected


@pytest.mark.parametrize("item", PASSED, ids=about)
def test_passed_on(item: Inline) -> None:
    assert found(item) == item.expected


@pytest.mark.parametrize("item", USED_OFTEN, ids=about)
def test_used_often_in_one_call(item: Inline) -> None:
    assert found(item) == item.expected


@pytest.mark.parametrize("item", LOOKED_AT, ids=about)
def test_looked_at(item: Inline) -> None:
    assert found(item) == item.expected
