# case: a script switches off an attribute of its only instance
from functools import partial

import jax
import jax.numpy as jnp


class Dropout:
    def __init__(self, rate):
        self.rate = rate

    @partial(jax.jit, static_argnums=(0,))  # expect: JIT203
    def __call__(self, key, x):
        keep = jax.random.bernoulli(key, 1.0 - self.rate, x.shape)
        return x * keep


drop = Dropout(0.5)
key = jax.random.key(0)
train_out = drop(key, jnp.ones(4))
drop.rate = 0.0
eval_out = drop(key, jnp.ones(4))
