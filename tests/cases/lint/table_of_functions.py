# case: a function that is chosen from a table by a key
import jax

KINDS = {"sum": lambda x: x.sum(), "mean": lambda x: x.mean()}


def reduce_with(kind, x):
    return jax.jit(KINDS[kind])(x)  # expect: JIT107


def reduce_with_own(kind, x):
    kinds = {"sum": lambda v: v.sum(), "mean": lambda v: v.mean()}
    return jax.jit(kinds[kind])(x)  # expect: JIT101


def reduce_at(number, x):
    return jax.jit((lambda v: v.sum(), lambda v: v.mean())[number])(x)  # expect: JIT101


def reduce_with_given(kinds, kind, x):
    return jax.jit(kinds[kind])(x)
