# case: used in a loop of one call, but the file calls that function in a loop, so it is paid again each time
import jax


def evaluate(params, batches):
    score = jax.jit(lambda b: (params * b).sum())  # expect: JIT101
    return sum(score(batch) for batch in batches)


def fit(params, data, epochs):
    for _ in range(epochs):
        params = params - 0.1 * evaluate(params, data)
    return params


def once(params, batches):
    score = jax.jit(lambda b: (params * b).sum())
    return sum(score(batch) for batch in batches)
