# case: the loops of flax.nnx, eager and with a body made anew
# options: --extend-select=JIT401
import jax.numpy as jnp
from flax import nnx


def main():
    x = jnp.ones(3)
    for _ in range(9):
        x = nnx.cond(x.sum() > 0, lambda v: v, lambda v: -v, x)  # expect: JIT401
        x = nnx.while_loop(lambda v: v.sum() < 9, lambda v: v + 1, x)  # expect: JIT401
        x = nnx.fori_loop(0, 3, lambda i, v: v + i, x)  # expect: JIT401
        x = nnx.switch(0, [lambda v: v, lambda v: -v], x)  # expect: JIT401


main()
