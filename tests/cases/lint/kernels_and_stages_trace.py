# case: what a pallas kernel, make_jaxpr, eval_shape and export are given runs traced
import functools

import equinox as eqx
import jax
from jax import export
from jax.experimental import pallas as pl


def add_kernel(x_ref, o_ref):
    o_ref[...] = jax.jit(lambda v: v + 1)(x_ref[...])


def scale_kernel(x_ref, o_ref, *, by):
    @jax.jit
    def scaled(v):
        return v * by

    o_ref[...] = scaled(x_ref[...])


def add(x):
    return pl.pallas_call(add_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def scale(x, by):
    return pl.pallas_call(functools.partial(scale_kernel, by=by), out_shape=x)(x)


def shapes(f, x):
    return jax.eval_shape(lambda v: jax.jit(lambda w: w)(v), x), eqx.filter_eval_shape(lambda v: jax.jit(lambda w: w)(v), x)


def exported(x):
    def whole(v):
        return jax.jit(lambda w: w + 1)(v)

    return export.export(whole)(x)


def eager(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
