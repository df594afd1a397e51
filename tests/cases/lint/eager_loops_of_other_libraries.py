# case: loops of nnx, optax and jaxopt in an eager loop
# options: --extend-select=JIT401
import jax
import jax.numpy as jnp
import jaxopt
import optax
from flax import nnx


def body(x):
    return x + 1


def same(x):
    return x


def loss(x):
    return (x**2).sum()


def main():
    x = jnp.ones(3)
    add = nnx.scan(body, in_axes=nnx.Carry, out_axes=nnx.Carry, length=3)
    for n in range(9):
        x = nnx.cond(n > 3, body, same, x)  # expect: JIT401
        x = nnx.switch(n % 2, [body, same], x)  # expect: JIT401
        x = nnx.while_loop(lambda v: v.sum() < 9, body, x)  # expect: JIT401
        x = nnx.fori_loop(0, 3, lambda i, v: v, x)  # expect: JIT401
        x = nnx.scan(body, in_axes=nnx.Carry, out_axes=nnx.Carry, length=3)(x)  # expect: JIT401
        x = add(x)
    search = optax.lbfgs()
    state = search.init(x)
    plain = optax.adam(0.1)
    other = plain.init(x)
    solver = jaxopt.GradientDescent(loss)
    for _ in range(9):
        value, slope = jax.value_and_grad(loss)(x)
        update, state = search.update(slope, state, x, value=value, grad=slope, value_fn=loss)  # expect: JIT401
        update, other = plain.update(slope, other, x)
        x = jaxopt.GradientDescent(loss).run(x).params  # expect: JIT401
        x = solver.run(x).params


@jax.jit
def step(x):
    for _ in range(3):
        x = nnx.fori_loop(0, 3, lambda i, v: v, x)
    return x
