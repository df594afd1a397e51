# case: an object made anew is the static `self` of a jitted method; several static arguments have one fault
import functools

import jax


class Sampler:
    def __init__(self, temperature=1.0):
        self.temperature = temperature

    @functools.partial(jax.jit, static_argnums=0)
    def draw(self, x):
        return x / self.temperature


def generate(x):
    return Sampler().draw(x)  # expect: JIT304


def generate_many(xs):
    out = []
    for x in xs:
        sampler = Sampler(0.5)
        out.append(sampler.draw(x))  # expect: JIT304
    return out


SAMPLER = Sampler()


def generate_kept(x):
    return SAMPLER.draw(x)


@functools.partial(jax.jit, static_argnums=(0, 1))
def combine(f, g, x):
    return f(g(x))


def twice(x):
    return combine(lambda v: v + 1, lambda v: v * 2, x)  # expect: JIT304
