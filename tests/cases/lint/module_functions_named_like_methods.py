# case: functions of a module that have the names of list methods, and a list of another module that really grows
import jax
import jax.numpy as jnp
from settings import HOOKS


@jax.jit
def normed(x):
    return x / jnp.linalg.norm(x)


@jax.jit  # expect: JIT204
def hooked(x):
    for hook in HOOKS:
        x = hook(x)
    return x


def extended(x):
    longer = jnp.append(x, 1.0)
    return jnp.insert(longer, 0, normed(x)), hooked(x)


def add_hook(hook):
    HOOKS.append(hook)
