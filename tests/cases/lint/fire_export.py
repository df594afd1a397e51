# case: functions handed to fire from the name guard run once
import fire
import jax
import jax.numpy as jnp


def export(path, width=32):
    params = jnp.load(path)
    hlo = jax.jit(lambda x: jnp.tanh(x @ params)).lower(jnp.ones((1, width))).as_text()
    with open(path + ".hlo", "w") as out:
        out.write(hlo)


def evaluate(path, width=32):
    params = jnp.load(path)
    forward = jax.jit(lambda x: jnp.tanh(x @ params))
    print(forward(jnp.ones((4, width))).mean())


if __name__ == "__main__":
    fire.Fire({"export": export, "evaluate": evaluate})
