"""Situations that retrace: the guard fails, and its text names the function, the cause and the argument."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import functools
import operator
import threading
from collections import OrderedDict, namedtuple
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from pytest_jitcache import RetraceError, traced_once
from pytest_jitcache.jax import settings

X = jnp.ones(3)


def verdict(run, *functions, **options):
    """The text of the failure of `run` as a block."""
    with pytest.raises(RetraceError) as caught, traced_once(*functions, **options):
        run()
    text = str(caught.value)
    assert len(text.splitlines()[0]) <= 100, text
    return text


def first_line(text):
    return text.splitlines()[0]


def loss(w, x):
    return jnp.sum((w - x) ** 2)


def double(x):
    return 2 * x


@jax.jit
def step(w, rate, bias=0.0):
    return w - rate * w + bias


@partial(jax.jit, static_argnames=("mode", "fn"))
def apply(x, mode=None, fn=None):
    return x if fn is None else fn(x)


# --- new function objects


def test_lambda_made_anew():
    def run():
        for _ in range(3):
            jax.jit(lambda v: v + 1)(X)

    assert first_line(verdict(run)) == "<lambda> traced 3x, allowed 1: new function object"


def test_text_names_definition_call_and_remedy():
    def f(x):
        return jax.jit(lambda v: v + 1)(x)

    text = verdict(lambda: (f(X), f(X)), f)
    assert "test_retraces.py" in text
    assert "The lambda in `test_text_names_definition_call_and_remedy.f`" in text
    assert "module level" in text


def test_value_and_grad_made_anew():
    def run():
        for _ in range(2):
            jax.jit(jax.value_and_grad(loss))(X, X)

    assert first_line(verdict(run)) == "loss traced 2x, allowed 1: new function object"


def test_lambda_from_a_string():
    text = verdict(lambda: [jax.jit(eval("lambda v: 2 * v"))(X) for _ in range(2)])
    assert first_line(text) == "<lambda> traced 2x, allowed 1: new function object"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: partial(jnp.sum, axis=0), "sum"),
        (lambda: partial(operator.mul, 2.0), "mul"),
        (lambda: jax.vmap(jnp.negative), "negative"),
    ],
)
def test_made_anew_around_a_function_of_jax(make, name):
    text = verdict(lambda: [jax.jit(make())(X) for _ in range(2)])
    assert first_line(text) == f"{name} traced 2x, allowed 1: new function object"


def test_function_of_jax_that_is_named():
    f = jax.jit(jax.nn.softmax)
    text = verdict(lambda: (f(jnp.full(3, 1.0)), f(X)), f)
    assert first_line(text) == "softmax traced 2x, allowed 1: weak type (x)"


@pytest.mark.parametrize(
    "transform", [jax.grad, jax.vmap, jax.jacfwd, jax.hessian, jax.named_call], ids=lambda t: t.__name__
)
def test_transform_made_anew(transform):
    def body(v):
        return jnp.sum(v**2)

    def run():
        for _ in range(2):
            jax.jit(transform(body))(X)

    text = verdict(run)
    assert first_line(text) == "body traced 2x, allowed 1: new function object"


def test_partial_of_jax_made_anew():
    def run():
        for _ in range(2):
            jax.jit(jax.tree_util.Partial(loss, X))(X)

    assert "loss traced 2x" in first_line(verdict(run))


def test_instance_of_a_callable_class_made_anew():
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return self.k * x

    def run():
        for _ in range(2):
            jax.jit(Scale(2.0))(X)

    text = verdict(run)
    assert first_line(text) == "Scale traced 2x, allowed 1: new function object"


def test_equal_but_dropped_callables():
    @dataclasses.dataclass(frozen=True)
    class Scale:
        k: float

        def __call__(self, x):
            return self.k * x

    def run():
        for _ in range(3):
            jax.jit(Scale(2.0))(X)

    assert "traced 3x" in verdict(run)


def test_bound_method_in_init_of_a_new_instance():
    class Model:
        def __init__(self):
            self.call = jax.jit(self.forward)

        def forward(self, x):
            return x * 3

    def run():
        for _ in range(3):
            Model().call(X)

    assert first_line(verdict(run)) == "forward traced 3x, allowed 1: new function object"


def test_classmethod_looked_up_each_time():
    class Model:
        @classmethod
        def forward(cls, x):
            return x * 3

    def run():
        for _ in range(2):
            jax.jit(Model.forward)(X)

    assert first_line(verdict(run)) == "forward traced 2x, allowed 1: new function object"


def test_recursive_nested_function():
    def power(x):
        @partial(jax.jit, static_argnames="again")
        def rec(v, again=False):
            return v if again else rec(v, again=True) * 2

        return rec(x)

    def run():
        for _ in range(2):
            power(X)

    assert "rec traced" in verdict(run, power)


def test_decorated_with_wraps_made_anew():
    def run():
        for _ in range(2):

            @functools.wraps(double)
            def outer(*args):
                return double(*args) + 1

            jax.jit(outer)(X)

    assert "double traced 2x" in first_line(verdict(run))


def test_jit_of_custom_jvp_made_anew():
    def run():
        for _ in range(2):
            f = jax.custom_jvp(double)
            f.defjvp(lambda p, t: (double(p[0]), double(t[0])))
            jax.jit(f)(X)

    assert "double traced 2x" in first_line(verdict(run))


def test_fresh_jit_under_vmap():
    def run():
        for _ in range(2):
            jax.vmap(jax.jit(lambda v: v + 1))(X)

    assert "traced 2x" in first_line(verdict(run))


def test_fresh_jit_under_value_and_grad():
    def run():
        for _ in range(2):
            jax.value_and_grad(jax.jit(lambda v: jnp.sum(v)))(X)

    assert "traced 2x" in first_line(verdict(run))


def test_fresh_lower():
    def run():
        for _ in range(2):
            jax.jit(lambda v: v + 1).lower(X).compile()

    assert "traced 2x" in first_line(verdict(run))


@pytest.mark.skipif((0, 8) <= jax.__version_info__ < (0, 9), reason="the pmap of JAX 0.8 keeps each partial alive")
def test_pmap_of_partial_made_anew():
    def run():
        for _ in range(2):
            jax.pmap(partial(loss, X))(X[None])

    assert first_line(verdict(run)) == "loss traced 2x, allowed 1: new function object"


def test_two_lambdas_on_one_line_are_two_functions():
    def run():
        for _ in range(2):
            f, g = jax.jit(lambda v: v + 1), jax.jit(lambda v: v - 1)
            f(X)
            g(X)

    assert "traced 2x" in first_line(verdict(run))


@pytest.mark.parametrize(
    "call",
    [
        lambda: lax.scan(lambda c, x: (c + x, c), jnp.float32(0), X),
        lambda: lax.map(lambda v: v * 2, X),
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, jnp.int32(0)),
        lambda: lax.fori_loop(0, 3, lambda i, c: c + i, jnp.int32(0)),
        lambda: lax.switch(1, [lambda v: v, lambda v: -v], X),
        lambda: lax.cond(True, lambda v: v, lambda v: -v, X),
    ],
    ids=["scan", "map", "while_loop", "fori_loop", "switch", "cond"],
)
def test_eager_control_flow_with_a_new_body(call):
    def run():
        for _ in range(2):
            call()

    text = verdict(run)
    assert first_line(text) == "<lambda> traced 2x, allowed 1: new function object"


# --- arguments


def test_weak_type():
    text = verdict(lambda: (step(X, 0.1), step(X, jnp.float32(0.1))), step)
    assert first_line(text) == "step traced 2x, allowed 1: weak type (rate)"
    assert "rate: ~f32[] before, f32[] now" in text
    assert "jnp.float32" in text


def test_weak_type_of_a_numpy_scalar():
    text = verdict(lambda: (step(X, 1), step(X, np.int32(1))), step)
    assert first_line(text) == "step traced 2x, allowed 1: weak type (rate)"


def test_weak_type_deep_in_a_tree():
    @jax.jit
    def forward(params):
        return params["dense"]["kernel"] * 2

    text = verdict(
        lambda: (forward({"dense": {"kernel": jnp.float32(1)}}), forward({"dense": {"kernel": 1.0}})), forward
    )
    assert "params['dense']['kernel']: f32[] before, ~f32[] now" in text


def test_weak_type_in_a_named_tuple():
    state = namedtuple("State", "w rate")

    @jax.jit
    def forward(s):
        return s.w * s.rate

    text = verdict(lambda: (forward(state(X, 0.1)), forward(state(X, jnp.float32(0.1)))), forward)
    assert "s.rate: ~f32[] before, f32[] now" in text


def test_keyword_order_does_not_matter_but_position_does():
    text = verdict(lambda: (step(X, rate=0.1), step(X, 0.1)), step)
    assert first_line(text) == "step traced 2x, allowed 1: positional or keyword (rate)"
    assert "by keyword before and by position now" in text


def test_default_spelled_out():
    text = verdict(lambda: (step(X, 0.1), step(X, 0.1, 0.0)), step)
    assert first_line(text) == "step traced 2x, allowed 1: default argument spelled out (bias)"


def test_default_left_out_later():
    text = verdict(lambda: (step(X, 0.1, bias=0.0), step(X, 0.1)), step)
    assert "default argument" in first_line(text)


def test_static_default_spelled_out():
    text = verdict(lambda: (apply(X), apply(X, mode=None)), apply)
    assert "default argument" in first_line(text)
    assert "mode" in first_line(text)


def test_fresh_static_object():
    class Options:
        pass

    text = verdict(lambda: (apply(X, mode=Options()), apply(X, mode=Options())), apply)
    assert first_line(text) == "apply traced 2x, allowed 1: static argument made anew (mode)"
    assert "__eq__" in text


def test_fresh_static_lambda():
    def run():
        for _ in range(2):
            apply(X, fn=lambda v: v)

    text = verdict(run, apply)
    assert first_line(text) == "apply traced 2x, allowed 1: static argument made anew (fn)"
    assert "module level" in text


def test_fresh_static_partial():
    def run():
        for _ in range(2):
            apply(X, fn=partial(loss, 2.0))

    assert first_line(verdict(run, apply)) == "apply traced 2x, allowed 1: static argument made anew (fn)"


def test_static_nan_in_a_tuple():
    def run():
        for _ in range(2):
            apply(X, mode=(1, float("nan")))

    assert first_line(verdict(run, apply)) == "apply traced 2x, allowed 1: static argument is NaN (mode)"


class Layer(NamedTuple):
    width: int
    act: object


@dataclasses.dataclass(frozen=True)
class Config:
    width: int
    act: object


@pytest.mark.parametrize("make", [Layer, Config, lambda *a: (a, "x"), lambda w, f: frozenset({w, f})])
def test_closure_in_a_static_container(make):
    def run():
        for _ in range(2):
            apply(X, mode=make(3, lambda v: v))

    assert "static argument made anew (mode)" in first_line(verdict(run, apply))


@pytest.mark.parametrize("make", [Layer, Config])
def test_kept_static_container_is_no_fault(make):
    kept = make(3, lambda v: v), make(3, lambda v: -v)
    with traced_once(apply) as traces:
        for mode in kept * 2:
            apply(X, mode=mode)
    assert len(traces) == 2


def test_outer_function_is_to_blame_for_what_is_made_anew_in_its_trace():
    @jax.jit
    def total(xs, scale):
        return lax.scan(lambda c, x: (c + x, None), jnp.float32(0), xs)[0] * scale

    def run():
        total(X, 0.5)
        total(X, jnp.float32(0.5))

    assert first_line(verdict(run)) == "total traced 2x, allowed 1: weak type (scale)"
    wrapped = traced_once(run)
    total.clear_cache()
    with pytest.raises(RetraceError, match="total traced 2x, allowed 1: weak type"):
        wrapped()


@pytest.mark.parametrize(
    "transform", [jax.grad, jax.value_and_grad, jax.vmap, jax.jacfwd, jax.jacrev, jax.hessian, jnp.vectorize]
)
def test_transform_is_called_by_its_name(transform):
    def run():
        for _ in range(2):
            jax.jit(transform(loss))(X, X)

    assert f"`{transform.__name__}(loss)` makes a new function object" in verdict(run)


def test_function_that_eager_map_wraps_anew():
    def run():
        for _ in range(4):
            lax.map(double, X)

    text = verdict(run)
    assert first_line(text) == "double traced 4x, allowed 1: new function object"
    assert "`double` is the same as before, but each call wraps it in a new function" in text


def test_wrapper_without_a_name_of_its_own():
    def run():
        for _ in range(2):
            jax.jit(jax.named_call(loss, name="loss"))(X, X)

    assert "The wrapper around `loss` is a new function object" in verdict(run)


def test_closure_in_a_static_tuple():
    def run():
        for _ in range(2):
            apply(X, mode=("relu", lambda v: v))

    assert "static argument made anew (mode)" in first_line(verdict(run, apply))


def test_static_dataclass_that_compares_by_identity():
    @dataclasses.dataclass(eq=False)
    class Config:
        depth: int = 2

    def run():
        for _ in range(2):
            apply(X, mode=Config())

    assert "static argument made anew (mode)" in first_line(verdict(run, apply))


def test_new_instance_as_static_self():
    class Model:
        @partial(jax.jit, static_argnums=0)
        def forward(self, x):
            return x * 2

    text = verdict(lambda: (Model().forward(X), Model().forward(X)), Model.forward)
    assert first_line(text) == "forward traced 2x, allowed 1: static argument made anew (self)"


def test_closure_in_pytree_metadata():
    @jax.tree_util.register_pytree_node_class
    class Layer:
        def __init__(self, w, act):
            self.w, self.act = w, act

        def tree_flatten(self):
            return (self.w,), self.act

        @classmethod
        def tree_unflatten(cls, act, children):
            return cls(children[0], act)

    @jax.jit
    def forward(layer, x):
        return layer.act(layer.w * x)

    def run():
        for _ in range(2):
            forward(Layer(X, lambda v: v), X)

    text = verdict(run, forward)
    assert first_line(text) == "forward traced 2x, allowed 1: pytree structure made anew (layer)"


def namedtuple_of(x):
    return namedtuple("Batch", "x y")(x, x)


def frozen_dataclass_of(_):
    @dataclasses.dataclass(frozen=True)
    class Config:
        depth: int = 2

    return Config()


def member_of(_):
    class Mode(enum.Enum):
        TRAIN = 1

    return (Mode.TRAIN,)


def class_of(_):
    class Mode:
        depth = 2

    return Mode


@pytest.mark.parametrize("make", [frozen_dataclass_of, member_of, class_of])
def test_class_of_a_static_argument_made_anew(make):
    text = verdict(lambda: [apply(X, mode=make(X)) for _ in range(3)], apply)
    assert first_line(text) == "apply traced 3x, allowed 1: class made anew (mode)"
    assert "Define the class once, at module level." in text


def test_class_of_a_pytree_made_anew():
    @jax.jit
    def forward(batch):
        return batch.x + batch.y

    text = verdict(lambda: [forward(namedtuple_of(X)) for _ in range(3)], forward)
    assert first_line(text) == "forward traced 3x, allowed 1: class made anew (batch)"
    assert "batch: Batch(x=f32[3], y=f32[3])" in text


def test_callable_object_whose_class_is_made_anew():
    def run():
        for _ in range(3):

            class Step:
                def __call__(self, v):
                    return v + 1

            jax.jit(Step())(X)

    assert first_line(verdict(run)) == "Step traced 3x, allowed 1: new function object"


@pytest.mark.parametrize("value", [float("nan"), complex("nan"), np.float32("nan"), decimal.Decimal("nan")], ids=repr)
def test_nan_of_any_type_as_static(value):
    text = verdict(lambda: [apply(X, mode=copy_of(value)) for _ in range(2)], apply)
    assert first_line(text) == "apply traced 2x, allowed 1: static argument is NaN (mode)"


def copy_of(value):
    return type(value)(str(value).strip("()"))


# --- per="total"


def total(run, *functions):
    return verdict(run, *functions, per="total")


def test_total_shape():
    text = total(lambda: (step(X, 0.1), step(jnp.ones(4), 0.1)), step)
    assert first_line(text) == "step traced 2x, allowed 1: shape (w)"
    assert "w: f32[3] before, f32[4] now" in text


def test_total_dtype():
    text = total(lambda: (step(X, 0.1), step(X.astype(jnp.bfloat16), 0.1)), step)
    assert first_line(text) == "step traced 2x, allowed 1: dtype (w)"
    assert "w: f32[3] before, bf16[3] now" in text


def test_total_static_value():
    text = total(lambda: (apply(X, mode="train"), apply(X, mode="eval")), apply)
    assert first_line(text) == "apply traced 2x, allowed 1: static argument changed (mode)"
    assert "'train' before, 'eval' now" in text


def test_total_structure_of_a_dict():
    @jax.jit
    def forward(params):
        return params["w"]

    text = total(lambda: (forward({"w": X}), forward({"w": X, "b": X})), forward)
    assert first_line(text) == "forward traced 2x, allowed 1: pytree structure (params)"


def test_total_dict_or_ordered_dict():
    @jax.jit
    def forward(params):
        return params["w"]

    text = total(lambda: (forward({"w": X}), forward(OrderedDict(w=X))), forward)
    assert first_line(text) == "forward traced 2x, allowed 1: pytree structure (params)"
    assert "OrderedDict" in text


def test_total_key_or_raw_key():
    @jax.jit
    def draw(key):
        return jax.random.normal(key)

    text = total(lambda: (draw(jax.random.key(0)), draw(jax.random.PRNGKey(0))), draw)
    assert "key<fry>[] before, u32[2] now" in text


# --- context


def test_config_context():
    def run():
        step(X, 0.1)
        with jax.numpy_dtype_promotion("strict"):
            step(X, 0.1)

    text = verdict(run, step)
    assert "JAX config (numpy_dtype_promotion)" in first_line(text)


def test_default_device_context():
    def run():
        step(np.ones(3, np.float32), 0.1)
        with jax.default_device(jax.devices()[0]):
            step(np.ones(3, np.float32), 0.1)

    assert "JAX config (default_device)" in first_line(verdict(run, step))


def test_mesh_context():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))

    def run():
        step(X, 0.1)
        with jax.set_mesh(mesh) if hasattr(jax, "set_mesh") else mesh:
            step(X, 0.1)

    assert "mesh" in first_line(verdict(run, step))


def test_caches_cleared():
    def run():
        step(X, 0.1)
        jax.clear_caches()
        step(X, 0.1)

    assert first_line(verdict(run, step)) == "step traced 2x, allowed 1: caches cleared"


def test_own_cache_cleared():
    def run():
        step(X, 0.1)
        step.clear_cache()
        step(X, 0.1)

    assert first_line(verdict(run, step)) == "step traced 2x, allowed 1: caches cleared"


# --- compiles


def test_committed_array_compiles_again():
    text = verdict(lambda: (step(X, 0.1), step(jax.device_put(X, jax.devices()[0]), 0.1)), step, max_compiles=1)
    assert first_line(text) == "step compiled 2x, allowed 1: committed to a device (w)"


def test_other_jit_options_compile_again():
    def run():
        jax.jit(double)(X + 0)
        jax.jit(double, donate_argnums=0)(X + 0)

    text = verdict(run, max_compiles=1)
    assert first_line(text) == "double compiled 2x, allowed 1: jit options"
    assert "donate_argnums" in text


def test_jit_of_jit_compiles_again():
    def run():
        for _ in range(2):
            jax.jit(jax.jit(double))(X)

    text = verdict(run, max_compiles=1)
    assert "double compiled 2x, allowed 1" in first_line(text)


# --- plain functions that run inside a trace


@pytest.mark.skipif(jax.__version_info__ < (0, 5), reason="JAX 0.5 or later")
def test_plain_function_inlined_in_a_function_made_anew():
    def run():
        for _ in range(2):
            jax.jit(lambda v: double(v) + 1)(X)

    text = verdict(run, double)
    assert first_line(text) == "double traced 2x, allowed 1: new function object"
    assert "inlined in the trace of <lambda>" in text


# --- threads


def test_retrace_on_a_worker_thread():
    def work():
        jax.jit(lambda v: v - 1)(X)

    def run():
        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    text = verdict(run, work)
    assert "traced 2x" in first_line(text)
    assert "thread Thread-" in text


def test_cause_unknown_where_jax_does_not_say_under_which_settings(monkeypatch):
    monkeypatch.setattr(settings, "settings", tuple)

    def run():
        step(X, 0.1)
        step.clear_cache()
        step(X, 0.1)

    with pytest.raises(RetraceError) as caught, traced_once(step):
        run()
    text = str(caught.value)
    assert first_line(text) == "step traced 2x, allowed 1: cause unknown"
    assert "fix: Run pytest with -vv: it shows all that is known" in text
    caught.value.verbosity = 2
    assert "trace 2 at test_retraces.py" in str(caught.value).partition("all that is known:")[2].replace(
        "tests/trace/", ""
    )


@pytest.mark.skipif(jax.__version_info__ < (0, 9), reason="JAX 0.8 and earlier do not tell a compile from a trace here")
@pytest.mark.parametrize("limit", [1, 3])
def test_eager_loop_compiled_for_each_bound(limit):
    def body(i, x):
        return x + i * limit

    def bounds():
        lax.fori_loop(0, 5, body, X)
        for n in (6, 7):
            lax.fori_loop(0, n, body, X)

    if limit == 1:
        assert first_line(verdict(bounds, bounds, max_compiles=1)).startswith("body compiled 3x, allowed 1: ")
        return
    with traced_once(bounds, max_compiles=3) as traces:
        bounds()
    assert (len(traces), len(traces.compiles)) == (1, 3)


def test_remedy_is_for_the_function_that_was_made_anew_around_the_named_one():
    def area(a):
        return a * a

    def text_of():
        for _ in range(2):
            jax.jit(lambda a: area(a) + 1)(X)

    if jax.__version_info__ >= (0, 5):
        assert "why: The lambda at" in verdict(text_of, area)


def test_what_differs_is_the_part_that_was_made_anew():
    def run():
        for _ in range(2):
            apply(X, mode=((3, "a name that is long enough to be cut off" * 2), lambda v: v))

    text = verdict(run, apply)
    assert "differs: mode: <function test_what_differs" in text
    assert "`mode` is static, and what it holds compares by identity" in text
    assert "Define the function in `mode` once" in text


def test_value_in_the_metadata_of_a_pytree():
    @jax.tree_util.register_pytree_node_class
    class Layer:
        def __init__(self, w, depth):
            self.w, self.depth = w, depth

        def tree_flatten(self):
            return (self.w,), ("relu", self.depth)

        @classmethod
        def tree_unflatten(cls, meta, children):
            return cls(children[0], meta[1])

    forward = jax.jit(lambda layer: layer.w * layer.depth)
    text = total(lambda: (forward(Layer(X, 1)), forward(Layer(X, 2))), forward)
    assert first_line(text) == "<lambda> traced 2x, allowed 1: pytree structure (layer)"
    assert "differs: layer: 1 before, 2 now" in text


def test_weak_array():
    text = verdict(lambda: (step(jnp.full(3, 1.0), 0.1), step(X, 0.1)), step)
    assert "An array that is made of Python scalars alone" in text
    assert "Give `w` its dtype where it is made" in text


def test_remedy_for_each_of_two_differences():
    text = verdict(lambda: (step(X, 0.1), step(X, rate=jnp.float32(0.1))), step)
    assert "fix: Pass `rate` the same way in every call." in text
    assert "And then: Pass `rate` as the same kind in every call" in text


@pytest.mark.skipif(jax.__version_info__[:2] == (0, 8), reason="JAX 0.8 keeps the function of a pmap alive")
def test_pmap_of_a_lambda():
    def run():
        for _ in range(2):
            jax.pmap(lambda v: v + 1)(X[None])

    text = verdict(run)
    assert "`pmap(<lambda>)` makes a new function object" in text or "The lambda at" in text
    assert "control-flow" not in text
