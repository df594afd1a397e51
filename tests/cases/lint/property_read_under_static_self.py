# case: the static method reads a property that reads what a setter assigns
from functools import partial

import jax


class Camera:
    def __init__(self, fov):
        self._fov = fov

    @property
    def fov(self):
        return self._fov

    @fov.setter
    def fov(self, value):
        self._fov = value

    @partial(jax.jit, static_argnums=(0,))  # expect: JIT203
    def project(self, points):
        return points * self.fov
