# case: a new object as static `self` of a jitted method
import functools

import jax


class Greedy:
    def __init__(self, temperature=1.0):
        self.temperature = temperature

    @functools.partial(jax.jit, static_argnums=0)
    def sample(self, x):
        return x / self.temperature


class ByValue(Greedy):
    def __eq__(self, other):
        return self.temperature == other.temperature

    def __hash__(self):
        return hash(self.temperature)


def generate(x):
    sampler = Greedy()
    return sampler.sample(x)  # expect: JIT304


def decode(xs):
    return [Greedy().sample(x) for x in xs]  # expect: JIT304


def decode_by_value(xs):
    return [ByValue().sample(x) for x in xs]


def decode_with_one(xs):
    return [SAMPLER.sample(x) for x in xs]


SAMPLER = Greedy()


def predict(x):
    return SAMPLER.sample(x)
