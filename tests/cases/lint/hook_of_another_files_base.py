# case: a private method that only a base of another file can call, and one that the file calls
from threading import Thread

import jax


class Learned(Thread):
    def _tell(self, state, params):
        @jax.jit
        def infer(values):
            return self.model.apply(params, values)

        return infer(state)

    def score(self, state):
        return self._scored(state)

    def _scored(self, state):
        return jax.jit(lambda v: v.sum())(state)  # expect: JIT101
