# case: an object that jits in its constructor, made in a loop and dropped, or kept
import jax


class Minimizer:
    def __init__(self, loss):
        self.slope = jax.jit(jax.grad(loss))

    def run(self, x):
        for _ in range(10):
            x = x - self.slope(x)
        return x


def fit_all(loss, xs):
    found = []
    for x in xs:
        found.append(Minimizer(loss).run(x))  # expect: JIT106
    return found


def fit_named(loss, xs):
    for x in xs:
        solver = Minimizer(loss)  # expect: JIT106
        yield solver.run(x)


def fit_with_one(loss, xs):
    solver = Minimizer(loss)
    return [solver.run(x) for x in xs]


def solvers(losses):
    found = []
    for loss in losses:
        solver = Minimizer(loss)
        found.append(solver)
    return found


def test_all():
    for loss in [abs]:
        Minimizer(loss).run(1.0)
