# case: a memoising decorator written in this file caches the factory
import functools

import jax


def memoize(fn):
    results = {}

    @functools.wraps(fn)
    def lookup(*key):
        if key not in results:
            results[key] = fn(*key)
        return results[key]

    return lookup


@memoize
def stencil(order, spacing):
    @jax.jit
    def apply(u):
        return u / spacing**order

    return apply


def laplacian(u, dx):
    return stencil(2, dx)(u)
