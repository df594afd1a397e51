"""The text: what happens, on which occasion, why, and a remedy that is right for the place."""

import pytest
from sources import PRELUDE, text_of

REMEDIES = {
    # what it is about: (source, code, the end of the text)
    "a lambda that captures nothing": (
        "def hot(x):\n    return jax.jit(lambda v: v + 1)(x)\n",
        "JIT101",
        "it captures nothing: define it once at module level",
    ),
    "a lambda that captures a local": (
        "def hot(x, k):\n    return jax.jit(lambda v: v + k)(x)\n",
        "JIT101",
        "define it once at module level and pass `k` as an argument",
    ),
    "a lambda that captures several": (
        "def hot(x, a, b):\n    return jax.jit(lambda v: a * v + b)(x)\n",
        "JIT101",
        "pass `a` and `b` as arguments",
    ),
    "a lambda that captures self": (
        "class Box:\n    def hot(self, x, k):\n        return jax.jit(lambda v: v * self.gain + k)(x)\n",
        "JIT101",
        "pass `k` and what it reads of `self` as arguments",
    ),
    "a lambda that calls methods of self": (
        "class Box:\n    def hot(self, x, k):\n        return jax.jit(lambda v: self.net.apply(v) + k)(x)\n",
        "JIT101",
        "define it once in `__init__`, keep it on the object, and pass `k` as an argument",
    ),
    "a nested function that calls a method of self": (
        (
            "class Box:\n    def hot(self, x):\n        @jax.jit\n        def add(v):\n            return self.gain(v)\n\n"
            "        return add(x)\n"
        ),
        "JIT103",
        "define it once in `__init__` and keep it on the object",
    ),
    "a lambda that captures a function": (
        "def hot(x, fn, k):\n    return jax.jit(lambda v: fn(v) + k)(x)\n",
        "JIT101",
        "pass `k` as an argument and `fn` as a static one",
    ),
    "a lambda that takes a shape from a local": (
        "def hot(x, n, k):\n    return jax.jit(lambda v: v[0] * jnp.zeros(n) + k)(x)\n",
        "JIT101",
        "pass `k` as an argument and `n` as a static one",
    ),
    "a lambda that branches on a local": (
        "def hot(x, flag):\n    return jax.jit(lambda v: v if flag else -v)(x)\n",
        "JIT101",
        "pass `flag` as a static argument",
    ),
    "a lambda that calls a local function": (
        ("def hot(x, k):\n    def shift(v):\n        return v + k\n\n    return jax.jit(lambda v: 2 * shift(v))(x)\n"),
        "JIT101",
        "define it and `shift` once at module level and pass `k` as an argument",
    ),
    "a lambda that calls local functions without captures": (
        "def hot(x):\n    twice = lambda v: 2 * v\n    g = jax.grad(twice)\n    return jax.jit(lambda v: g(v))(x)\n",
        "JIT101",
        "define it, `g` and `twice` once at module level",
    ),
    "a lambda that calls a local transform of a parameter": (
        "def hot(loss, x):\n    g = jax.grad(loss)\n    return jax.jit(lambda v: g(v))(x)\n",
        "JIT101",
        "define it and `g` once at module level and pass `loss` as a static argument",
    ),
    "a nested function that calls itself": (
        (
            "def hot(x, k):\n    @jax.jit\n    def add(v, n=2):\n        return add(v + k, n - 1) if n else v\n\n"
            "    return add(x)\n"
        ),
        "JIT103",
        "define it once at module level and pass `k` as an argument",
    ),
    "a lambda in a loop of the module": (
        "for k in range(3):\n    jax.jit(lambda v: v + k)(1.0)\n",
        "JIT101",
        "pass `k` as an argument",
    ),
    "options that depend on locals": (
        "def hot(x, where):\n    return jax.jit(lambda v: v, out_shardings=where)(x)\n",
        "JIT101",
        "make one jitted function for each value of `out_shardings`, in a function under `functools.cache`",
    ),
    "a nested function under options that depend on locals": (
        (
            "def hot(x, where, k):\n    @partial(jax.jit, out_shardings=where)\n    def add(v):\n        return v + k\n\n"
            "    return add(x)\n"
        ),
        "JIT103",
        (
            "pass `k` as an argument, and make one jitted function for each value of `out_shardings`, in a function under "
            "`functools.cache`"
        ),
    ),
    "a nested function that captures a literal": (
        "def hot(x):\n    axis = 'i'\n    return jax.pmap(lambda v: lax.psum(v, axis), axis_name=axis)(x)\n",
        "JIT101",
        "define it once at module level, and `axis` beside it",
    ),
    "a nested function under a decorator that reads a local": (
        "def hot(x, mesh):\n    @jax.jit\n    @partial(jax.shard_map, mesh=mesh)\n    def add(v):\n        return v\n\n    return add(x)\n",
        "JIT103",
        "make one jitted function for each value of `mesh`, in a function under `functools.cache`",
    ),
    "a partial of locals": (
        "def hot(x, k):\n    return jax.jit(partial(stable, k))(x)\n",
        "JIT102",
        (
            "jit the function itself once at module level and pass it the bound values as arguments "
            "(static ones, where they are no arrays)"
        ),
    ),
    "a partial of what does not change": (
        "def hot(x):\n    return jax.jit(partial(jax.tree.map, stable))(x)\n",
        "JIT102",
        "what it binds does not change: make the jitted partial once at module level",
    ),
    "a partial of a nested function": (
        (
            "def hot(x, k):\n    def body(c, v):\n        return c + k, v\n\n"
            "    return jax.jit(partial(lax.scan, body))(0.0, x)\n"
        ),
        "JIT102",
        "jit one function at module level that does the same, and pass it what the bound function captures as arguments",
    ),
    "a partial of a result": (
        "def hot(x, k):\n    shift = k.mean()\n    return jax.jit(partial(stable, shift))(x)\n",
        "JIT102",
        (
            "jit the function itself once at module level and pass it the bound values as arguments "
            "(static ones, where they are no arrays)"
        ),
    ),
    "a partial of a gradient": (
        "def hot(x, k):\n    return jax.jit(partial(lax.map, jax.grad(stable)))(x)\n",
        "JIT102",
        "what it binds does not change: make the jitted partial once at module level",
    ),
    "a method on self": (
        "class Box:\n    def add(self, v):\n        return v\n\n    def hot(self, x):\n        return jax.jit(self.add)(x)\n",
        "JIT104",
        "jit `add` once in `__init__` and keep it, or jit a function of the object's data",
    ),
    "a method on an object that is made anew": (
        (
            "class Box:\n    def add(self, v):\n        return v\n\n\ndef hot(x):\n    box = Box()\n"
            "    return jax.jit(box.add)(x)\n"
        ),
        "JIT104",
        "jit a function of the object's data at module level, as the object is made anew as well",
    ),
    "a class method on its class": (
        "class Box:\n    @classmethod\n    def add(cls, v):\n        return v\n\n\ndef hot(x):\n    return jax.jit(Box.add)(x)\n",
        "JIT104",
        "make `add` a static method and jit it once at module level",
    ),
    "a method on an object of the module": (
        "from elsewhere import build\n\nBOX = build()\n\n\ndef hot(x):\n    return jax.jit(BOX.add)(x)\n",
        "JIT104",
        "jit it once where the object is made and keep it there, or jit a function of the object's data",
    ),
    "a transform of a function of the module": (
        "def hot(x):\n    return jax.jit(jax.grad(stable))(x)\n",
        "JIT105",
        "make the jitted function once, at module level",
    ),
    "a transform of a nested function": (
        "def hot(x, k):\n    def loss(v):\n        return v * k\n\n    return jax.jit(jax.grad(loss))(x)\n",
        "JIT105",
        "make the jitted function once, at module level, with `k` as an argument",
    ),
    "a transform of a transform of a local lambda": (
        "def hot(x):\n    sq = lambda v: v * v\n    rows = jax.vmap(sq)\n    return jax.jit(jax.vmap(rows))(x)\n",
        "JIT105",
        "make the jitted function once, at module level",
    ),
    "a transform of a method": (
        (
            "class Box:\n    def loss(self, v):\n        return v\n\n    def hot(self, x):\n"
            "        return jax.jit(jax.grad(self.loss))(x)\n"
        ),
        "JIT105",
        "make the jitted function once, in `__init__`, and keep it on the object",
    ),
    "a transform of a parameter": (
        "def hot(fn, x):\n    return jax.jit(jax.grad(fn))(x)\n",
        "JIT105",
        "make the jitted function once, outside of `hot`, and keep it",
    ),
    "a transform in a loop": (
        "def main(fn):\n    for x in range(3):\n        jax.jit(jax.grad(fn))(x)\n",
        "JIT105",
        "make the jitted function once, before the loop",
    ),
    "nnx.jit": (
        "def hot(x):\n    return nnx.jit(stable)(x)\n",
        "JIT105",
        "make the jitted function once, at module level",
    ),
    "checkpoint": (
        "def hot(x):\n    return jax.jit(jax.checkpoint(stable))(x)\n",
        "JIT105",
        "so JAX compiles it again each time (its trace is found again); make the jitted function once, at module level",
    ),
    "a factory": (
        "def make(k):\n    return jax.jit(lambda v: v + k)\n\n\ndef hot(x):\n    return make(3)(x)\n",
        "JIT106",
        "keep its product in a variable that lives longer, or put `functools.cache` on it",
    ),
    "a factory of a factory": (
        (
            "def make(k):\n    return jax.jit(lambda v: v + k)\n\n\ndef make_more():\n    return make(3)\n\n\n"
            "def hot(x):\n    return make_more()(x)\n"
        ),
        "JIT106",
        (
            "so JAX traces and compiles it again each time; keep its product in a variable that lives longer, or put "
            "`functools.cache` on it"
        ),
    ),
    "a nested factory": (
        "def hot(x):\n    def make(k):\n        return jax.jit(lambda v: v + k)\n\n    return make(3)(x)\n",
        "JIT106",
        "move it out of `hot` and put `functools.cache` on it, or keep its product",
    ),
    "a method that is a factory": (
        (
            "class Box:\n    def make(self, k):\n        return jax.jit(lambda v: v + k)\n\n    def hot(self, x):\n"
            "        return self.make(3)(x)\n"
        ),
        "JIT106",
        "make its product once in `__init__` and keep it on the object",
    ),
    "a method that is a factory, called with what changes": (
        (
            "class Box:\n    def make(self, k):\n        return jax.jit(lambda v: v + k)\n\n    def hot(self, x, n):\n"
            "        return self.make(n)(x)\n"
        ),
        "JIT106",
        "keep its products on the object, in a dictionary by `n`",
    ),
    "a method that is a factory, called with an attribute": (
        (
            "class Box:\n    def make(self, k):\n        return jax.jit(lambda v: v + k)\n\n    def hot(self, x):\n"
            "        return self.make(self.k)(x)\n"
        ),
        "JIT106",
        "make its product once in `__init__` and keep it on the object",
    ),
    "a static method that is a factory": (
        (
            "class Box:\n    @staticmethod\n    def make(k):\n        return jax.jit(lambda v: v + k)\n\n\n"
            "def hot(x):\n    return Box.make(3)(x)\n"
        ),
        "JIT106",
        "keep its product in a variable that lives longer, or put `functools.cache` on it",
    ),
    "a factory of what is made anew": (
        (
            "def make(tx):\n    return jax.jit(lambda v: tx.update(v))\n\n\n"
            "def hot(x, rate):\n    return make(optax.sgd(rate))(x)\n"
        ),
        "JIT106",
        "keep its product in a variable that lives longer",
    ),
    "a factory called with what may be an array": (
        "def make(k):\n    return jax.jit(lambda v: v + k)\n\n\ndef hot(x, k):\n    return make(k)(x)\n",
        "JIT106",
        "or put `functools.cache` on it, if `k` is hashable",
    ),
    "a factory in a loop that changes nothing of it": (
        "def make(k):\n    return jax.jit(lambda v: v + k)\n\n\ndef hot(xs, k):\n    return [make(k)(x) for x in xs]\n",
        "JIT106",
        "make its product once before the loop",
    ),
    "a property that is a factory": (
        (
            "class Box:\n    @property\n    def add(self):\n        return jax.jit(lambda v: v)\n\n    def hot(self, x):\n"
            "        return self.add(x)\n"
        ),
        "JIT106",
        "make it a `functools.cached_property`",
    ),
    "a function of the module": (
        "def hot(x):\n    return jax.jit(stable)(x)\n",
        "JIT107",
        "jit it once at module level",
    ),
    "a function of the module, options that depend on locals": (
        "def hot(x, where):\n    return jax.jit(stable, out_shardings=where)(x)\n",
        "JIT107",
        "make one jitted function for each value of `out_shardings`, in a function under `functools.cache`",
    ),
    "a function of the enclosing function": (
        (
            "def outer(k):\n    def add(v):\n        return v + k\n\n    def hot(x):\n        return jax.jit(add)(x)\n\n"
            "    return hot\n"
        ),
        "JIT107",
        "jit it once in `outer`, outside of `hot`",
    ),
    "a nested function, wrapped in a loop": (
        "def main(k):\n    def add(v):\n        return v + k\n\n    for x in range(3):\n        jax.jit(add)(x)\n",
        "JIT107",
        "jit it once before the loop",
    ),
}


@pytest.mark.parametrize("what", REMEDIES)
def test_remedy(what: str) -> None:
    source, code, remedy = REMEDIES[what]
    text = text_of(PRELUDE + source, code)
    assert text.endswith(remedy)
    assert len(text) < 400


@pytest.mark.parametrize(
    ("source", "occasion"),
    [
        ("def hot(x):\n    return jax.jit(lambda v: v)(x)\n", "on each call of `hot`"),
        (
            "hot = lambda x: jax.jit(lambda v: v)(x)\n",
            f"on each call of the lambda in line {PRELUDE.count(chr(10)) + 1}",
        ),
        (
            "for x in y:\n    jax.jit(lambda v: v)(x)\n",
            f"on each iteration of the loop in line {PRELUDE.count(chr(10)) + 1}",
        ),
        ("[jax.jit(lambda v: v)(x) for x in y]\n", "on each iteration of the comprehension in line"),
    ],
)
def test_occasion(source: str, occasion: str) -> None:
    assert f"a jitted lambda is made anew {occasion}" in text_of(PRELUDE + source, "JIT101")


def test_why() -> None:
    source = "def hot(x):\n    return jax.jit(lambda v: v)(x)\n"
    assert "so JAX traces and compiles it again each time" in text_of(PRELUDE + source, "JIT101")


def test_stable_says_that_the_trace_is_kept() -> None:
    source = "def hot(x):\n    return jax.jit(stable)(x)\n"
    assert "its trace is kept, but the wrapper is made again each time" in text_of(PRELUDE + source, "JIT107")


def test_nnx_says_that_it_makes_a_function_of_its_own() -> None:
    source = "def hot(x):\n    return nnx.jit(stable)(x)\n"
    text = text_of(PRELUDE + source, "JIT105")
    assert text.startswith(
        "`flax.nnx.jit` wraps its function in a new one on each call of `hot`, and it is dropped, so JAX"
    )


def test_a_method_is_not_kept_where_what_it_reads_is_assigned_later() -> None:
    source = (
        "class Box:\n    def __init__(self):\n        self.gain = 1.0\n\n"
        "    def tune(self, gain):\n        self.gain = gain\n\n"
        "    def scale(self, x):\n        return x * self.gain\n\n"
        "    def hot(self, x):\n        return jax.jit(self.scale)(x)\n"
    )
    text = text_of(PRELUDE + source, "JIT104")
    assert "`__init__`" not in text
    assert "pass it what `scale` reads on the object, as `self.gain` is assigned in line" in text


@pytest.mark.parametrize("given", ['{"k": 2}', "[1, 2]", "{1, 2}", "[i for i in range(3)]"])
def test_no_cache_for_what_has_no_hash(given: str) -> None:
    source = (
        "def make(options):\n    return jax.jit(lambda v: v * len(options))\n\n"
        f"def hot(x):\n    return make({given})(x)\n"
    )
    text = text_of(PRELUDE + source, "JIT106")
    assert text.endswith("keep its product in a variable that lives longer")


CHANGES = """
class A:
    def __init__(self):
        self.k = 1.0

    def set(self, k):
        self.k = k

    def scaled(self, v):
        return v * self.k

    def make(self):
        return jax.jit(lambda v: self.scaled(v))

"""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("    def hot(self, x):\n        return jax.jit(lambda v: self.scaled(v))(x)\n", "JIT101"),
        ("    def hot(self, x):\n        return jax.jit(jax.grad(self.scaled))(x)\n", "JIT105"),
        ("    def hot(self, x):\n        return self.make()(x)\n", "JIT106"),
        ("    def hot(self, x):\n        return jax.jit(self.scaled)(x)\n", "JIT104"),
    ],
)
def test_what_reads_a_changing_attribute_is_not_kept(body: str, code: str) -> None:
    text = text_of(PRELUDE + CHANGES + body, code)
    line = (PRELUDE + CHANGES).split("\n").index("        self.k = k") + 1
    assert f"as `self.k` is assigned in line {line}" in text
    assert "__init__" not in text
    assert "keep" not in text
    kept = text_of(PRELUDE + CHANGES.replace("    def set(self, k):\n        self.k = k\n\n", "") + body, code)
    assert "`__init__`" in kept
