"""Cached makers: options and static values from locals, each program run before and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from meaning import assert_same_meaning
from test_meaning import Fixture, fix

SAFE = [
    Fixture(
        "sharding_made_in_the_function",
        """
        from jax.sharding import NamedSharding, PartitionSpec as P

        MESH = jax.make_mesh((1,), ("x",))

        def step(x):
            sharding = NamedSharding(MESH, P())
            double = jax.jit(lambda v: v * 2, out_shardings=sharding)
            return double(x)
        """,
        ["step(jnp.ones(3))"],
        "@functools.cache\ndef _make_double(sharding):\n    return jax.jit(lambda v: v * 2, out_shardings=sharding)\n",
    ),
    Fixture(
        "sharding_from_an_annotated_parameter",
        """
        from jax.sharding import NamedSharding, PartitionSpec as P

        MESH = jax.make_mesh((1,), ("x",))

        def step(x, sharding: NamedSharding):
            @functools.partial(jax.jit, out_shardings=sharding)
            def double(v):
                \"\"\"Twice.\"\"\"
                return v * 2  # exactly

            # after
            return double(x)
        """,
        ["step(jnp.ones(3), NamedSharding(MESH, P()))", "step(jnp.ones(3), NamedSharding(MESH, P('x')))"],
        "    double = _make_double(sharding)\n\n    # after\n",
    ),
    Fixture(
        "specs_in_a_list_of_options",
        """
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

        MESH = jax.make_mesh((1,), ("x",))

        def step(x, y, mesh: Mesh):
            return jax.jit(
                lambda a, b: (a + b, a - b),
                in_shardings=(NamedSharding(mesh, P("x")), None),  # rows
                out_shardings=NamedSharding(mesh, P()),
            )(x, y)
        """,
        ["step(jnp.ones(4), jnp.arange(4.0), MESH)"],
        '    return jax.jit(\n        lambda a, b: (a + b, a - b),\n        in_shardings=(NamedSharding(mesh, P("x")), None),  # rows\n',
    ),
    Fixture(
        "length_in_a_vmapped_function",
        """
        def fold(x):
            n = len(x) // 2
            k = int(2)
            return jax.jit(jax.vmap(lambda v: v.reshape(k, -1).sum(0)))(x)
        """,
        ["fold(jnp.arange(12.0).reshape(3, 4))", "fold(jnp.arange(8.0).reshape(1, 8))"],
        "def _make_fold(k):",
    ),
    Fixture(
        "first_device",
        """
        def step(x):
            return jax.jit(lambda v: v + 1, out_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0]))(x)
        """,
        ["step(jnp.ones(3))"],
        "def _make_step():\n    return jax.jit(lambda v: v + 1, out_shardings=",
    ),
    Fixture(
        "name_of_an_axis_by_position",
        """
        def mean(xs):
            return jax.pmap(lambda v: jax.lax.pmean(v, "batch"), "batch")(xs)
        """,
        ["mean(jnp.ones((1, 3)))"],
        '@functools.partial(jax.pmap, axis_name="batch")\n',
    ),
    Fixture(
        "name_of_an_axis_in_a_local",
        """
        def mean(xs, name: str = "batch"):
            return jax.pmap(lambda v: jax.lax.pmean(v, name), axis_name=name)(xs)
        """,
        ["mean(jnp.ones((1, 3)))", "mean(jnp.ones((1, 3)), 'rows')"],
        "def _make_mean(name):",
    ),
    Fixture(
        "sharding_of_two_branches",
        """
        from jax.sharding import NamedSharding, PartitionSpec as P

        MESH = jax.make_mesh((1,), ("x",))

        def gather(x, split):
            if split:
                sharding = NamedSharding(MESH, P("x"))
            elif x.ndim == 1:
                sharding = NamedSharding(MESH, P())
            else:
                raise ValueError(x.ndim)
            return jax.jit(lambda v: v, out_shardings=sharding)(x)
        """,
        ["gather(jnp.ones(3), True)", "gather(jnp.ones(3), False)"],
        "    return _make_gather(sharding)(x)\n",
    ),
    Fixture(
        "two_in_one_loop",
        """
        def means(batches, name: str):
            found = []
            for batch in batches:
                mean = jax.pmap(lambda v: jax.lax.pmean(v, name), name)
                total = jax.pmap(lambda v: jax.lax.psum(v, name), name)
                found.append(mean(batch) + total(batch))
            return found
        """,
        ["means([jnp.ones((1, 3)), jnp.zeros((1, 3))], 'rows')"],
        "            total = _make_total(name)\n".replace("    " * 3, "    " * 2),
    ),
]

UNSAFE = [
    Fixture(
        "attribute_of_self",
        """
        class MoEModel:
            def __init__(self):
                self.sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])

            def __call__(self, x):
                return jax.jit(
                    lambda v: v * 2,
                    out_shardings=self.sharding,  # where it goes
                )(x)

        MODEL = MoEModel()
        """,
        ["MODEL(jnp.ones(3))"],
        "        return _make_moe_model(self.sharding)(x)\n",
    ),
    Fixture(
        "static_numbers_from_a_parameter",
        """
        def step(x, numbers):
            @functools.partial(jax.jit, static_argnums=numbers)
            def repeat(n, v):
                return jnp.tile(v, n)
            return repeat(2, x)
        """,
        ["step(jnp.ones(3), 0)", "step(jnp.ones(3), (0,))"],
        "    repeat = _make_repeat(numbers)\n",
    ),
    Fixture(
        "donation_asked_for",
        """
        def update(state, grads, donate):
            def apply(s, g):
                return s - 0.1 * g
            step = jax.jit(lambda s, g: s - 0.1 * g, donate_argnums=donate)
            return step(state, grads)
        """,
        ["update(jnp.ones(3), jnp.ones(3), ())"],
        "def _make_step(donate):",
    ),
    Fixture(
        "option_that_a_helper_makes",
        """
        def where(x):
            return jax.sharding.SingleDeviceSharding(jax.devices()[0])

        def step(x):
            return jax.jit(lambda v: v + 1, out_shardings=where(x))(x)
        """,
        ["step(jnp.ones(3))"],
        "    return _make_step(where(x))(x)\n",
    ),
    Fixture(
        "number_that_decides_a_shape_under_vmap",
        """
        def fold(x, n):
            return jax.jit(jax.vmap(lambda v: v.reshape(n, -1)))(x)
        """,
        ["fold(jnp.arange(12.0).reshape(3, 4), 2)", "fold(jnp.arange(12.0).reshape(3, 4), 4)"],
        "def _make_fold(n):",
    ),
    Fixture(
        "flag_under_pmap",
        """
        def run(xs, deep):
            return jax.pmap(lambda v: v * 2 if deep else v)(xs)
        """,
        ["run(jnp.ones((1, 3)), True)", "run(jnp.ones((1, 3)), False)"],
        "def _make_run(deep):",
    ),
    Fixture(
        "shape_of_an_argument",
        """
        def fold(x, y):
            return jax.jit(jax.vmap(lambda v: v.reshape(y.shape[1], -1)))(x)
        """,
        ["fold(jnp.arange(12.0).reshape(3, 4), jnp.ones((5, 2)))"],
        "_make_fold(y.shape)(x)",
    ),
]


@pytest.mark.parametrize("fixture", SAFE, ids=[fixture.name for fixture in SAFE])
def test_safe_maker_means_the_same(fixture: Fixture, tmp_path: Path) -> None:
    means_the_same(fixture, tmp_path)


@pytest.mark.parametrize("fixture", UNSAFE, ids=[fixture.name for fixture in UNSAFE])
def test_maker_on_an_assumption_means_the_same_where_it_holds(fixture: Fixture, tmp_path: Path) -> None:
    done = fix(fixture.text)
    assert done.text == fixture.text
    assert all(left.reason.startswith("needs --unsafe, which assumes that ") for left in done.left)
    fixture.unsafe = True
    means_the_same(fixture, tmp_path)


def means_the_same(fixture: Fixture, folder: Path) -> None:
    done = fix(fixture.text, unsafe=fixture.unsafe)
    assert done.left == []
    assert done.fixed
    assert fixture.has in done.text
    assert_same_meaning(fixture.text, done.text, fixture.calls, folder)
    assert fix(done.text, unsafe=fixture.unsafe).text == done.text


LEFT = {
    "rebound local": "n = 2\n    n = n + 1\n    return jax.jit(jax.vmap(lambda v: v.reshape(n)))(x)",
    "array as a value": "return jax.jit(jax.vmap(lambda v: v * k))(x)",
    "array that is donated": "return jax.jit(lambda v: v * k, donate_argnums=0)(x)",
    "list of numbers": "n = [0]\n    return jax.jit(lambda v: v, donate_argnums=n)(x)",
    "call that is no transform": "return jax.jit(jax.vmap(k.build(2)))(x)",
    "method of a local": "return jax.jit(jax.vmap(k.apply))(x)",
    "item of a dict": "return jax.jit(lambda v: v, donate_argnums=k['donate'])(x)",
    "changed outside": "k.append(2)\n    return jax.jit(lambda v: v, donate_argnums=k)(x)",
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_can_be_no_key_is_left_alone(body: str) -> None:
    text = Fixture("", f"def step(x, k):\n    {body}", []).text
    done = fix(text, unsafe=True)
    assert done.text == text
    assert done.left
