"""Question 2: what is jitted. Which of these JAX finds in its cache again was measured."""

import pytest
from sources import Inline, found, inline

FRESH = inline("""\
== a lambda
def hot(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== a lambda by keyword
def hot(x):
    return jax.jit(fun=lambda v: v + 1)(x)  # expect: JIT101
== a lambda with options
def hot(x):
    return jax.jit(lambda v, n: v * n, static_argnums=1)(x, 2)  # expect: JIT101
== a lambda for a jit with bound options
def hot(x):
    return partial(jax.jit, static_argnums=1)(lambda v, n: v * n)(x, 2)  # expect: JIT101
== a lambda for a jit called with options first
def hot(x):
    return jax.jit(static_argnums=1)(lambda v, n: v * n)(x, 2)  # expect: JIT101
== a lambda under a name
def hot(x):
    add = lambda v: v + 1
    return jax.jit(add)(x)  # expect: JIT101
== a lambda chosen by a condition
def hot(x, up):
    return jax.jit((lambda v: v + 1) if up else (lambda v: v - 1))(x)  # expect: JIT101
== a lambda or a stable function
def hot(x, fn=None):
    return jax.jit(fn or (lambda v: v + 1))(x)  # expect: JIT101
== a lambda in a wrapper that shows its name
def hot(x):
    return jax.jit(functools.wraps(stable)(lambda v: v + 1))(x)  # expect: JIT101
== pmap of a lambda
def hot(x):
    return jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i")(x)  # expect: JIT101
== filter_jit of a lambda
def hot(x):
    return eqx.filter_jit(lambda v: v + 1)(x)  # expect: JIT101
== nnx.jit of a lambda
def hot(model, x):
    return nnx.jit(lambda m, v: m(v))(model, x)  # expect: JIT101
== a partial
def hot(x):
    return jax.jit(partial(stable))(x)  # expect: JIT102
== a partial under a name
def hot(x):
    add = functools.partial(stable)
    return jax.jit(add)(x)  # expect: JIT102
== a partial of a parameter
def hot(fn, x):
    return jax.jit(partial(fn, 2))(x)  # expect: JIT102
== a Partial
def hot(x):
    return jax.jit(jax.tree_util.Partial(stable))(x)  # expect: JIT102
== a partial of a jitted partial
def hot(x):
    return jax.jit(partial(partial(stable)))(x)  # expect: JIT102
== a partial for filter_jit
def hot(x):
    return eqx.filter_jit(partial(stable))(x)  # expect: JIT102
== a nested function
def hot(x):
    def add(v):
        return v + 1

    return jax.jit(add)(x)  # expect: JIT103
== a nested function through an alias
def hot(x):
    def add(v):
        return v + 1

    more = add
    return jax.jit(more)(x)  # expect: JIT103
== a nested async function's sibling
async def hot(x):
    def add(v):
        return v + 1

    return jax.jit(add)(x)  # expect: JIT103
== a decorated nested function
def hot(x):
    @jax.jit  # expect: JIT103
    def add(v):
        return v + 1

    return add(x)
== a decorated nested function with options
def hot(x):
    @partial(jax.jit, static_argnames=("n",))  # expect: JIT103
    def add(v, n):
        return v + n

    return add(x, n=1)
== a method on self
class Box:
    def add(self, v):
        return v + 1

    def hot(self, x):
        return jax.jit(self.add)(x)  # expect: JIT104
== an inherited method on self
class Base:
    def add(self, v):
        return v + 1


class Box(Base):
    def hot(self, x):
        return jax.jit(self.add)(x)  # expect: JIT104
== a class method on cls
class Box:
    @classmethod
    def add(cls, v):
        return v + 1

    @classmethod
    def hot(cls, x):
        return jax.jit(cls.add)(x)  # expect: JIT104
== a class method on the class
class Box:
    @classmethod
    def add(cls, v):
        return v + 1


def hot(x):
    return jax.jit(Box.add)(x)  # expect: JIT104
== a method on a local instance
class Box:
    def add(self, v):
        return v + 1


def hot(x):
    box = Box()
    return jax.jit(box.add)(x)  # expect: JIT104
== a method on a module's instance
class Box:
    def add(self, v):
        return v + 1


BOX = Box()


def hot(x):
    return jax.jit(BOX.add)(x)  # expect: JIT104
== apply of a local linen module
import jax
from flax import linen as nn


def hot(params, x):
    model = nn.Dense(3)
    return jax.jit(model.apply)(params, x)  # expect: JIT104
== a method of a fresh instance
class Box:
    def add(self, v):
        return v + 1


def hot(x):
    return jax.jit(Box().add)(x)  # expect: JIT104
== grad of a stable function
def hot(x):
    return jax.jit(jax.grad(stable))(x)  # expect: JIT105
== grad of a parameter
def hot(fn, x):
    return jax.jit(jax.grad(fn))(x)  # expect: JIT105
== value_and_grad under a name
def hot(x):
    slope = jax.value_and_grad(stable)
    return jax.jit(slope)(x)  # expect: JIT105
== vmap of a lambda
def hot(x):
    return jax.jit(jax.vmap(lambda v: v + 1))(x)  # expect: JIT105
== vmap of a partial
def hot(x):
    return jax.jit(jax.vmap(partial(stable)))(x)  # expect: JIT105
== vmap with bound options
def hot(x):
    return jax.jit(partial(jax.vmap, in_axes=0)(stable))(x)  # expect: JIT105
== grad by keyword
def hot(x):
    return jax.jit(jax.grad(fun=stable))(x)  # expect: JIT105
== hessian, jacfwd, linearize
def hot(x):
    a = jax.jit(jax.hessian(stable))(x)  # expect: JIT105
    b = jax.jit(jax.jacfwd(stable))(x)  # expect: JIT105
    return a + b
== checkpoint, which is compiled again
def hot(x):
    return jax.jit(jax.checkpoint(stable))(x)  # expect: JIT105
== jit of jit, which is compiled again
def hot(x):
    return jax.jit(jax.jit(stable))(x)  # expect: JIT105
== nnx.jit of a stable function
def hot(model):
    return nnx.jit(stable)(model)  # expect: JIT105
== filter_jit of jax.grad
def hot(x):
    return eqx.filter_jit(jax.grad(stable))(x)  # expect: JIT105
== filter_jit of filter_grad of a lambda
def hot(x):
    return eqx.filter_jit(eqx.filter_grad(lambda v: v.sum()))(x)  # expect: JIT105
== the result of a function of another module
import jax
from elsewhere import build


def hot(x):
    return jax.jit(build(3))(x)  # expect: JIT105
== the result of a function of this file
def build(k):
    return lambda v: v + k


def hot(x):
    return jax.jit(build(3))(x)  # expect: JIT105
== a fresh instance of a class of this file
class Add:
    def __call__(self, v):
        return v + 1


def hot(x):
    return jax.jit(Add())(x)  # expect: JIT105
== vectorize
def hot(x):
    return jax.jit(jnp.vectorize(stable))(x)  # expect: JIT105
== checkify
import jax
from jax.experimental import checkify


def hot(x):
    return jax.jit(checkify.checkify(jnp_sum))(x)  # expect: JIT105
== shard_map
import jax
from jax.experimental.shard_map import shard_map
from elsewhere import body, mesh, spec


def hot(x):
    return jax.jit(shard_map(body, mesh, spec, spec))(x)  # expect: JIT105
== a parameter for which a caller passes a lambda
def apply(fn, x):
    return jax.jit(fn)(x)  # expect: JIT101


def hot(x):
    return apply(lambda v: v + 1, x)
== a parameter for which a caller passes a partial by keyword
def apply(x, fn):
    return jax.jit(fn)(x)  # expect: JIT102


def hot(x):
    return apply(x, fn=partial(stable))
""")

STABLE = inline("""\
== a function of the module
def hot(x):
    return jax.jit(stable)(x)  # expect: JIT107
== a function of the module through a local name
def hot(x):
    fn = stable
    return jax.jit(fn)(x)  # expect: JIT107
== a lambda of the module
add = lambda v: v + 1


def hot(x):
    return jax.jit(add)(x)  # expect: JIT107
== a partial of the module
add = partial(stable)


def hot(x):
    return jax.jit(add)(x)  # expect: JIT107
== a transform of the module
slope = jax.grad(stable)


def hot(x):
    return jax.jit(slope)(x)  # expect: JIT107
== a library's function
def hot(x):
    return jax.jit(jnp.sin)(x)  # expect: JIT107
== a function defined in a branch of the module
if True:
    def add(v):
        return v + 1


def hot(x):
    return jax.jit(add)(x)  # expect: JIT107
== an imported function
import jax
from elsewhere import add


def hot(x):
    return jax.jit(add)(x)  # expect: JIT107
== a function of an imported module
import jax
import elsewhere.ops


def hot(x):
    return jax.jit(elsewhere.ops.add)(x)  # expect: JIT107
== a class
class Box:
    pass


def hot(x):
    return jax.jit(Box)(x)  # expect: JIT107
== a static method on self
class Box:
    @staticmethod
    def add(v):
        return v + 1

    def hot(self, x):
        return jax.jit(self.add)(x)  # expect: JIT107
== a static method on the class
class Box:
    @staticmethod
    def add(v):
        return v + 1


def hot(x):
    return jax.jit(Box.add)(x)  # expect: JIT107
== a plain method on the class
class Box:
    def add(self, v):
        return v + 1


def hot(box, x):
    return jax.jit(Box.add)(box, x)  # expect: JIT107
== a function of the enclosing function, in an inner one
def outer(k):
    def add(v):
        return v + k

    def hot(x):
        return jax.jit(add)(x)  # expect: JIT107

    return hot
== a partial of the enclosing function, in an inner one
def outer(k):
    add = partial(stable)

    def hot(x):
        return jax.jit(add)(x)  # expect: JIT107

    return hot
== with options
def hot(x):
    return jax.jit(stable, donate_argnums=0)(x)  # expect: JIT107
== filter_jit of a function of the module
def hot(x):
    return eqx.filter_jit(stable)(x)  # expect: JIT107
== an instance of the module
class Add:
    def __call__(self, v):
        return v + 1


ADD = Add()


def hot(x):
    return jax.jit(ADD)(x)  # expect: JIT107
== compiled ahead of time and dropped
def hot(x):
    return jax.jit(stable).lower(x).compile()(x)  # expect: JIT107
== made before the loop, wrapped in it
def main():
    add = lambda v: v + 1
    for x in range(3):
        jax.jit(add)(x)  # expect: JIT107
""")

SILENT = inline("""\
== a parameter
def hot(fn, x):
    return jax.jit(fn)(x)
== an attribute of a parameter
def hot(model, params, x):
    return jax.jit(model.apply)(params, x)
== an attribute of self that is no method
class Box:
    def __init__(self, fn):
        self.fn = fn

    def hot(self, x):
        return jax.jit(self.fn)(x)
== an item
def hot(fns, x):
    return jax.jit(fns[0])(x)
== a loop variable
def hot(fns, x):
    for fn in fns:
        x = jax.jit(fn)(x)
    return x
== the loop variable of a comprehension
def hot(fns, x):
    return [jax.jit(fn)(x) for fn in fns]
== something looked up by name
def hot(name, x):
    return jax.jit(getattr(jnp, name))(x)
== something out of a dictionary
TABLE = {}


def hot(name, x):
    return jax.jit(TABLE[name])(x) + jax.jit(TABLE.get(name))(x)
== a starred argument
def hot(*parts):
    return jax.jit(*parts)(1.0)
== a name that nobody binds
def hot(x):
    return jax.jit(mystery)(x)
== pmap of a bound method
class Box:
    def add(self, v):
        return v + 1

    def hot(self, x):
        return jax.pmap(self.add)(x)
== filter_jit of a method of a module
class Net(eqx.Module):
    def encode(self, x):
        return x

    def hot(self, x):
        return eqx.filter_jit(self.encode)(x)
== filter_jit of a module
def hot(key, x):
    return eqx.filter_jit(eqx.nn.MLP(2, 2, 2, 2, key=key))(x)
== filter_jit of filter_grad
def hot(x):
    return eqx.filter_jit(eqx.filter_grad(stable))(x)
== filter_jit of filter_value_and_grad of filter_vmap
def hot(x):
    return eqx.filter_jit(eqx.filter_value_and_grad(eqx.filter_vmap(stable)))(x)
== what a cached factory returns
@functools.cache
def build(k):
    return lambda v: v + k


def hot(x):
    return jax.jit(build(3))(x)
== a parameter for which callers pass stable functions
def apply(fn, x):
    return jax.jit(fn)(x)


def hot(x):
    return apply(stable, x)
== a parameter for which a script passes a lambda once
def apply(fn, x):
    return jax.jit(fn)(x)


print(apply(lambda v: v + 1, 3.0))
== a jit that is handed the target elsewhere
def hot(wrap, x):
    return wrap(jax.jit, stable)(x)
""")


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", FRESH, ids=about)
def test_fresh(item: Inline) -> None:
    assert item.expected
    assert found(item) == item.expected


@pytest.mark.parametrize("item", STABLE, ids=about)
def test_stable(item: Inline) -> None:
    assert item.expected
    assert found(item) == item.expected


@pytest.mark.parametrize("item", SILENT, ids=about)
def test_unknown_or_found_again(item: Inline) -> None:
    assert found(item) == item.expected
