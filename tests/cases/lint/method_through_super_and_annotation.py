# case: a method through `super()` and through an annotation
import jax


class Maze:
    def reset(self, key):
        return key

    @staticmethod
    def size(key):
        return key


class View(Maze):
    def again(self, key):
        return jax.jit(super().reset)(key)  # expect: JIT104


class Runner:
    env: Maze

    def restart(self, key):
        return jax.jit(self.env.reset)(key)  # expect: JIT104


def restart(env: Maze, key):
    return jax.jit(env.reset)(key)  # expect: JIT104


def restart_any(env, key):
    return jax.jit(env.reset)(key)


class Holder:
    def __init__(self, env):
        self.env = env
        self.reset = jax.jit(env.reset)

    def restart(self, key):
        return self.reset(key)

    def unknown(self, key):
        return jax.jit(self.env.reset)(key)
