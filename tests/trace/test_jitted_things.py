"""Jitted things of all kinds, of JAX and of libraries, guarded as they are."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pytest_jitcache import RetraceError, traced_once

pytestmark = pytest.mark.filterwarnings("ignore:jax.experimental.pjit.pjit has been deprecated")

X = jnp.ones(3)


def loss(w, x):
    return jnp.sum((w - x) ** 2)


def times(factor, x):
    return factor * x


class Poly:
    def __init__(self, *coefficients):
        self.coefficients = coefficients

    def __call__(self, x):
        return sum(c * x**n for n, c in enumerate(self.coefficients))

    @partial(jax.jit, static_argnums=0)
    def method(self, x):
        return self(x)


THINGS = {
    "jit": lambda: jax.jit(loss),
    "jit of partial": lambda: jax.jit(partial(loss, X)),
    "jit of callable object": lambda: jax.jit(Poly(1.0, 2.0)),
    "jit of bound method": lambda: jax.jit(Poly(1.0, 2.0).__call__),
    "jit of grad": lambda: jax.jit(jax.grad(loss)),
    "jit of vmap": lambda: jax.jit(jax.vmap(loss)),
    "jit of value_and_grad": lambda: jax.jit(jax.value_and_grad(loss)),
    "jit of checkpoint": lambda: jax.jit(jax.checkpoint(loss)),
    "jit of jit": lambda: jax.jit(jax.jit(loss)),
    "grad of jit": lambda: jax.grad(jax.jit(loss)),
    "vmap of jit": lambda: jax.vmap(jax.jit(loss)),
    "donating": lambda: jax.jit(loss, donate_argnums=()),
    "method": lambda: Poly(1.0).method,
    "shard_map": lambda: jax.jit(_sharded()),
    "pmap": lambda: jax.pmap(loss),
    "pjit": lambda: pytest.importorskip("jax.experimental.pjit").pjit(loss),
    "jit of custom_jvp": lambda: jax.jit(_custom_jvp()),
    "jit of custom_vjp": lambda: jax.jit(_custom_vjp()),
}


def _custom_jvp():
    f = jax.custom_jvp(loss)
    f.defjvp(lambda primals, tangents: (loss(*primals), sum(map(jnp.sum, tangents))))
    return f


def _custom_vjp():
    f = jax.custom_vjp(loss)
    f.defvjp(lambda w, x: (loss(w, x), (w, x)), lambda kept, g: (g * kept[0], g * kept[1]))
    return f


def _sharded():
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))
    spec = jax.sharding.PartitionSpec()
    return shard_map(loss, mesh=mesh, in_specs=(spec, spec), out_specs=spec)


def arguments(name, dtype=jnp.float32):
    x = jnp.ones((1, 3), dtype) if name in ("pmap", "jit of vmap", "vmap of jit") else jnp.ones(3, dtype)
    return (x,) if name in ("jit of partial", "jit of callable object", "jit of bound method", "method") else (x, x)


def skip_what_cannot_start_cold(name):
    if name == "pmap" and jax.__version_info__ < (0, 9):
        pytest.skip("the pmap of JAX 0.8 and earlier has no cache of its own that could be cleared")


@pytest.mark.parametrize("name", THINGS)
def test_traced_once(name):
    f = THINGS[name]()
    with traced_once(f) as traces:
        for _ in range(3):
            f(*arguments(name))
    assert len(traces) == 1


@pytest.mark.parametrize("name", THINGS)
def test_two_signatures_are_too_many_in_total(name):
    skip_what_cannot_start_cold(name)
    f = THINGS[name]()
    with pytest.raises(RetraceError, match="traced 2x, allowed 1: dtype"), traced_once(f, per="total"):
        f(*arguments(name))
        f(*arguments(name, jnp.bfloat16))


@pytest.mark.parametrize("name", THINGS)
def test_wrapped(name):
    skip_what_cannot_start_cold(name)
    f = traced_once(THINGS[name](), per="total")
    for _ in range(2):
        f(*arguments(name))
    with pytest.raises(RetraceError, match="dtype"):
        f(*arguments(name, jnp.bfloat16))


@pytest.mark.parametrize("name", [n for n in THINGS if n != "method"])
def test_made_anew_on_each_call(name):
    def run():
        THINGS[name]()(*arguments(name))

    stable = name in (
        "jit",
        "jit of checkpoint",
        "jit of jit",
        "grad of jit",
        "vmap of jit",
        "donating",
        "pmap",
        "pjit",
    )
    jax.clear_caches()
    if stable:
        with traced_once() as traces:
            for _ in range(3):
                run()
        assert len(traces) == 1
    else:
        with pytest.raises(RetraceError, match="traced 3x, allowed 1: new function object"), traced_once():
            for _ in range(3):
                run()


def test_wrapped_object_keeps_its_interface():
    f = traced_once(jax.jit(loss))
    assert f.__name__ == "loss"
    assert f.lower(X, X).compile()(X, X) == 0
    assert jax.grad(f)(X, X).shape == (3,)
    assert jax.jit(f)(X, X) == 0


def test_warm_call_of_a_wrapped_function_runs_no_python():
    f = traced_once(jax.jit(loss))
    f(X, x=X)
    ran = []
    sys.setprofile(lambda frame, event, _: ran.append(frame.f_code.co_name) if event == "call" else None)
    try:
        f(X, x=X)
    finally:
        sys.setprofile(None)
    assert ran == []


def test_wrapped_function_shares_the_caches_of_the_one_it_wraps():
    bare = jax.jit(loss)
    f = traced_once(bare)
    f(X, X)
    bare(X, X)
    assert len(f.traces) == 1
    bare(jnp.ones(4), X[:1])
    f(jnp.ones(4), X[:1])
    assert len(f.traces) == 2
    jax.clear_caches()
    with pytest.raises(RetraceError, match="caches cleared"):
        f(X, X)


def test_wrapped_function_keeps_static_arguments_donation_and_its_own_errors():
    @partial(jax.jit, static_argnames="n", donate_argnums=0)
    def repeat(x, n):
        if n < 0:
            raise LookupError(n)
        return x * n

    f = traced_once(repeat)
    x = jnp.full(3, 2.0)
    assert f(x, n=3)[0] == 6
    assert x.is_deleted()
    assert f(X + 0, 4)[0] == 4
    with pytest.raises(LookupError):
        f(X + 0, n=-1)
    with pytest.raises(TypeError, match="missing"):
        f()
    with pytest.raises(RetraceError, match=r"positional or keyword \(n\)"):
        f(X + 0, n=4)


def test_threads_that_race_for_the_first_call_of_a_wrapped_function():
    f = traced_once(jax.jit(loss))
    barrier = threading.Barrier(4)

    def work(_):
        barrier.wait()
        return f(X, X)

    with ThreadPoolExecutor(4) as pool:
        assert [float(y) for y in pool.map(work, range(4))] == [0.0] * 4
    assert len(f.traces) == 1


def test_wrapped_as_a_method():
    class Model:
        forward = traced_once(jax.jit(lambda self, x: x + 1, static_argnums=0))

    model = Model()
    assert model.forward(X)[0] == 2


class TestEquinox:
    @pytest.fixture(autouse=True)
    def _eqx(self):
        self.eqx = pytest.importorskip("equinox")

    def test_lambda_made_anew(self):
        with pytest.raises(RetraceError, match="<lambda> traced 2x, allowed 1: new function object"), traced_once():
            for _ in range(2):
                self.eqx.filter_jit(lambda v: v + 1)(X)

    def test_module_level_function_wrapped_each_time(self):
        with traced_once() as traces:
            for _ in range(3):
                self.eqx.filter_jit(times)(2.0, X)
        assert len(traces) == 1

    def test_python_float_is_static(self):
        f = self.eqx.filter_jit(times)
        with (
            pytest.raises(RetraceError, match=r"traced 2x, allowed 1: static argument changed \(factor\)"),
            traced_once(f, per="total"),
        ):
            f(1.0, X)
            f(2.0, X)

    def test_static_leaf_made_anew(self):
        f = self.eqx.filter_jit(apply)
        with (
            pytest.raises(RetraceError, match=r"apply traced 2x, allowed 1: static argument made anew \(fn\)"),
            traced_once(f),
        ):
            for _ in range(2):
                f(lambda v: v, X)

    def test_filter_grad_and_vmap_of_a_stable_function(self):
        with traced_once() as traces:
            for _ in range(3):
                self.eqx.filter_jit(self.eqx.filter_grad(loss))(X, X)
        assert len(traces) == 1

    def test_module_method(self):
        eqx = self.eqx
        layer = eqx.nn.Linear(3, 2, key=jax.random.key(0))
        f = eqx.filter_jit(layer)
        with traced_once(f) as traces:
            for _ in range(3):
                f(X)
        assert len(traces) <= 1


def apply(fn, x):
    return fn(x)


@pytest.mark.skipif(jax.__version_info__ < (0, 5), reason="the flax that installs beside JAX 0.4 does not work with it")
@pytest.mark.parametrize("remat", [False, True])
def test_lifted_scan_of_flax_linen(remat):
    """flax traces the body once more in the same call, to learn what is the same in all steps."""
    nn = pytest.importorskip("flax.linen")

    class Cell(nn.Module):
        @nn.compact
        def __call__(self, c, _):
            return nn.Dense(3)(c), None

    cell = nn.remat(Cell) if remat else Cell
    model = nn.scan(cell, variable_axes={"params": 0}, split_rngs={"params": True}, length=2)()
    params = model.init(jax.random.key(0), X, None)
    forward = jax.jit(lambda params, x: model.apply(params, x, None))
    with traced_once() as traces:
        for _ in range(3):
            forward(params, X)
    body = ["__call__"] if jax.__version_info__ >= (0, 9) else []  # before, a body inside a trace is not announced
    assert sorted(t.name for t in traces) == ["<lambda>", *body]


class TestFlax:
    @pytest.fixture(autouse=True)
    def _nnx(self):
        self.nnx = pytest.importorskip("flax.nnx")

    def test_decorated_once(self):
        f = self.nnx.jit(times)
        with traced_once(f) as traces:
            for _ in range(3):
                f(2.0, X)
        assert len(traces) == 1

    def test_apply_of_a_linen_module_is_looked_up_each_time(self):
        nn = pytest.importorskip("flax.linen")

        class Tiny(nn.Module):
            @nn.compact
            def __call__(self, x):
                return nn.Dense(2)(x)

        model = Tiny()
        x = jnp.ones((1, 3))
        variables = model.init(jax.random.key(0), x)
        with (
            pytest.raises(RetraceError, match="apply traced 2x, allowed 1: new function object") as caught,
            traced_once(),
        ):
            for _ in range(2):
                jax.jit(model.apply)(variables, x)
        assert "Looking up the method `apply` on an instance" in str(caught.value)
        assert "Tiny.apply` is defined at tests" in str(caught.value)
        apply = jax.jit(model.apply)
        with traced_once(apply) as traces:
            for _ in range(2):
                apply(variables, x)
        assert len(traces) == 1

    def test_made_anew(self):
        with pytest.raises(RetraceError, match="times traced 3x, allowed 1: new function object"), traced_once():
            for _ in range(3):
                self.nnx.jit(times)(2.0, X)

    def test_weak_type(self):
        f = self.nnx.jit(times)
        with pytest.raises(RetraceError, match="times traced 2x, allowed 1: weak type"), traced_once(f):
            f(2.0, X)
            f(jnp.float32(2.0), X)

    def test_model(self):
        nnx = self.nnx
        model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))

        @nnx.jit
        def forward(model, x):
            return model(x)

        with traced_once(forward) as traces:
            for _ in range(3):
                forward(model, X)
        assert len(traces) == 1
