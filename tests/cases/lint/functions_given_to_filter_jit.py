# case: functions that are passed to a jit of equinox, made anew or kept
import equinox as eqx
import jax


@eqx.filter_jit
def apply(function, x):
    return function(x)


def double(x):
    return x * 2


def spread(x):
    return apply(lambda v: v * 2, x)  # expect: JIT304


def spread_all(xs):
    def inner(v):
        return v * 2

    return [apply(inner, x) for x in xs]  # expect: JIT304


def spread_stable(x):
    return apply(double, x)


def spread_as_keyword(x):
    return apply(function=lambda v: v, x=x)  # expect: JIT304


def tree(x):
    return eqx.filter_jit(jax.tree.map)(double, x)  # expect: JIT107
