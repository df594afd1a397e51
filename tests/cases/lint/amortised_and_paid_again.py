# case: a jit for a loop of one call, and the file calls that function in a loop
import jax


def rollout(state, steps):
    step = jax.jit(lambda s: s + steps)  # expect: JIT101
    for _ in range(steps):
        state = step(state)
    return state


def play(state):
    while state.sum() < 100:
        state = rollout(state, 10)
    return state


def fit(state, rate):
    step = jax.jit(lambda s: s * rate)
    for _ in range(1000):
        state = step(state)
    return state


def sweep(state):
    return [fit(state, lr) for lr in (0.1, 0.2)]


def search(state, seeds):
    return [fit(state + seed, 0.1) for seed in seeds]
