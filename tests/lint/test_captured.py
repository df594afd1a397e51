"""JIT201 to JIT204: captured values that go stale."""

from __future__ import annotations

import textwrap

import pytest
from sources import judge, text_of

HEAD = """
import dataclasses
from functools import partial
import jax
import jax.numpy as jnp
import numpy as np
from jax import jit, lax
"""

GLOBALS = {
    "setter": """
        SCALE = 1.0
        @jax.jit  # expect: JIT201
        def f(x):
            return x * SCALE
        def set_scale(value):
            global SCALE
            SCALE = value
    """,
    "augmented_in_function": """
        STEP = 0
        f = jax.jit(lambda x: x + STEP)  # expect: JIT201
        def advance():
            global STEP
            STEP += 1
    """,
    "through_two_helpers": """
        SCALE = 1.0
        def inner(x):
            return x * SCALE
        def outer(x):
            return inner(x) + 1
        @jax.jit  # expect: JIT201
        def f(x):
            return outer(x)
        def set_scale(value):
            global SCALE
            SCALE = value
    """,
    "through_scan_body": """
        DECAY = 0.9
        def body(carry, row):
            return carry * DECAY + row, None
        @jax.jit  # expect: JIT201
        def f(rows):
            return lax.scan(body, 0.0, rows)
        def set_decay(value):
            global DECAY
            DECAY = value
    """,
    "through_a_method_of_an_instance": """
        SCALE = 1.0
        class Net:
            def __call__(self, x):
                return x * SCALE
        net = Net()
        @jax.jit  # expect: JIT201
        def f(x):
            return net(x)
        def set_scale(value):
            global SCALE
            SCALE = value
    """,
    "in_a_loop_at_module_level": """
        rate = 1.0
        @jit  # expect: JIT201
        def f(x):
            return x * rate
        y = jnp.ones(3)
        for _ in range(5):
            y = f(y)
            rate = rate * 0.5
    """,
    "loop_target_at_module_level": """
        @jit  # expect: JIT201
        def f(x):
            return x * rate
        for rate in (0.1, 0.2):
            print(f(jnp.ones(3)))
    """,
    "name_guard": """
        rate = 1.0
        @jit  # expect: JIT201
        def f(x):
            return x * rate
        if __name__ == "__main__":
            print(f(1.0))
            rate = 2.0
            print(f(1.0))
    """,
    "attribute_of_an_imported_module": """
        import settings
        @jax.jit  # expect: JIT201
        def f(x):
            return x * settings.GAIN
        def configure(gain):
            settings.GAIN = gain
    """,
    "monkeypatch_on_a_module": """
        import settings
        @jax.jit  # expect: JIT201
        def f(x):
            return x * settings.GAIN
        def test_gain(monkeypatch):
            monkeypatch.setattr(settings, "GAIN", 2.0)
            assert f(1.0) == 2.0
    """,
    "setattr_on_this_module": """
        import sys
        GAIN = 1.0
        @jax.jit  # expect: JIT201
        def f(x):
            return x * GAIN
        def configure(gain):
            setattr(sys.modules[__name__], "GAIN", gain)
    """,
    "globals_item": """
        GAIN = 1.0
        @jax.jit  # expect: JIT201
        def f(x):
            return x * GAIN
        def configure(gain):
            globals()["GAIN"] = gain
    """,
    "globals_update": """
        GAIN = 1.0
        @jax.jit  # expect: JIT201
        def f(x):
            return x * GAIN
        def configure(gain):
            globals().update(GAIN=gain)
    """,
    "product_of_a_factory": """
        GAIN = 1.0
        def make():
            @jax.jit  # expect: JIT201
            def f(x):
                return x * GAIN
            return f
        f = make()
        def configure(gain):
            global GAIN
            GAIN = gain
    """,
    "jit_of_what_a_factory_returns": """
        GAIN = 1.0
        def make(power):
            def f(x):
                return GAIN * x**power
            return f
        g = jax.jit(make(2))  # expect: JIT201
        def configure(gain):
            global GAIN
            GAIN = gain
    """,
    "jit_of_a_transform": """
        GAIN = 1.0
        def loss(x):
            return (GAIN * x).sum()
        grad = jax.jit(jax.grad(loss))  # expect: JIT201
        def configure(gain):
            global GAIN
            GAIN = gain
    """,
    "handed_to_a_jit": """
        GAIN = 1.0
        def loss(x):
            return (GAIN * x).sum()
        def compiled(fn):
            return jax.jit(fn)  # expect: JIT201
        fast = compiled(loss)
        def configure(gain):
            global GAIN
            GAIN = gain
    """,
    "with_target": """
        import contextlib
        @jit  # expect: JIT201
        def f(x):
            return x * scale
        for name in ("a", "b"):
            with contextlib.nullcontext(2.0) as scale:
                print(f(1.0))
    """,
    "main_rebinds_between_two_calls": """
        RATE = 1.0
        @jit  # expect: JIT201
        def f(x):
            return x * RATE
        def main():
            global RATE
            a = f(1.0)
            RATE = 2.0
            return a, f(1.0)
    """,
    "main_rebinds_in_its_loop": """
        RATE = 1.0
        @jit  # expect: JIT201
        def f(x):
            return x * RATE
        def main():
            global RATE
            for _ in range(3):
                print(f(1.0))
                RATE *= 0.5
    """,
    # ---- silent
    "bound_once": """
        RATE = 2.0
        @jit
        def f(x):
            return x * RATE
    """,
    "rebound_before_the_first_call": """
        rate = 1.0
        @jit
        def f(x):
            return x * rate
        rate = 2.0
        print(f(1.0))
    """,
    "rebound_after_the_last_call": """
        x = jnp.ones(3)
        @jit
        def f(y):
            return x * y
        print(f(1.0))
        x = "done"
        print(x)
    """,
    "bound_in_exclusive_branches": """
        try:
            import fast
            SCALE = fast.SCALE
        except ImportError:
            SCALE = 1.0
        if SCALE > 2:
            MODE = 1
        elif SCALE > 1:
            MODE = 2
        else:
            MODE = 3
        @jit
        def f(x):
            return x * SCALE + MODE
        print(f(1.0))
    """,
    "match_branches": """
        import sys
        match sys.platform:
            case "linux":
                SCALE = 1.0
            case _:
                SCALE = 2.0
        f = jit(lambda x: x * SCALE)
        print(f(1.0), f(2.0))
    """,
    "lazy_value": """
        _table = None
        def table():
            global _table
            if _table is None:
                _table = jnp.arange(3)
            return _table
        def reset():
            global _table
            _table = None
        @jit
        def f(x):
            return x + table()
        @jit
        def g(x):
            return x + _table
    """,
    "lazy_value_with_early_return": """
        _table = None
        def table():
            global _table
            if _table is not None:
                return _table
            _table = jnp.arange(3)
            return _table
        @jit
        def g(x):
            return x + _table
    """,
    "counts_its_own_traces": """
        traces = 0
        @jit
        def f(x):
            global traces
            traces += 1
            return x + 1
    """,
    "passed_as_an_argument": """
        SCALE = 1.0
        @jit
        def f(x, scale):
            return x * scale
        def call(x):
            return f(x, SCALE)
        def set_scale(value):
            global SCALE
            SCALE = value
    """,
    "shadowed_by_a_local": """
        SCALE = 1.0
        @jit
        def f(x):
            SCALE = 2.0
            return x * SCALE
        def set_scale(value):
            global SCALE
            SCALE = value
    """,
    "setter_binds_a_local": """
        SCALE = 1.0
        @jit
        def f(x):
            return x * SCALE
        def set_scale(value):
            SCALE = value
            return SCALE
    """,
    "set_in_main_before_the_first_call": """
        CONFIG = None
        @jit
        def f(x):
            return x * CONFIG
        def main():
            global CONFIG
            CONFIG = 2.0
            for _ in range(3):
                print(f(1.0))
        if __name__ == "__main__":
            main()
    """,
    "set_by_what_main_calls_first": """
        CONFIG = None
        @jit
        def f(x):
            return x * CONFIG
        def setup():
            global CONFIG
            CONFIG = 2.0
        def main():
            setup()
            for _ in range(3):
                print(f(1.0))
    """,
    "jitted_with_one_value_only": """
        DISABLED = False
        def maybe_jit(fn):
            if DISABLED:
                return fn
            else:
                return jit(fn)
        def loop(x):
            return x if DISABLED else -x
        fast = maybe_jit(loop)
        def disable():
            global DISABLED
            DISABLED = True
    """,
    "made_and_dropped_around_a_helper_that_jits": """
        FLAG = False
        def compiled(fn):
            return jit(fn)
        def run(x, k):
            def step(v):
                return v * k if FLAG else v
            return compiled(step)(x)
        def toggle():
            global FLAG
            FLAG = True
    """,
    "read_on_the_host": """
        LABEL = "a"
        def log(x):
            print(LABEL, x)
        @jit
        def f(x):
            jax.debug.callback(log, x)
            jax.debug.callback(lambda v: print(LABEL, v), x)
            return x
        def rename(label):
            global LABEL
            LABEL = label
    """,
    "made_anew_on_each_call": """
        SCALE = 1.0
        def f(x):
            return jax.jit(lambda v: v * SCALE)(x)
        def set_scale(value):
            global SCALE
            SCALE = value
    """,
    "functions_and_imports": """
        try:
            from fast import kernel
        except ImportError:
            def kernel(x):
                return x
        def helper(x):
            return x
        helper = jit(helper)
        @jit
        def f(x):
            return kernel(helper(x))
        print(f(1.0))
    """,
    "not_traced": """
        SCALE = 1.0
        def f(x):
            return x * SCALE
        def set_scale(value):
            global SCALE
            SCALE = value
        print(f(1.0))
    """,
    "import_of_the_value": """
        import settings
        from settings import GAIN
        f = jit(lambda x: x * GAIN)
        def configure(value):
            settings.GAIN = value
    """,
    "shape_of_a_rebound_array": """
        x = jnp.ones(3)
        f = jit(lambda y: y.reshape(x.shape))
        for _ in range(3):
            x = f(x)
    """,
    "table_built_in_a_loop_before": """
        total = 0
        for k in range(4):
            total += k
        f = jit(lambda x: x + total)
        print(f(1.0), f(2.0))
    """,
}

LOCALS = {
    "loop": """
        def train(p, n):
            rate = 0.1
            @jax.jit  # expect: JIT202
            def step(p):
                return p - rate
            for _ in range(n):
                p = step(p)
                rate *= 0.5
            return p
    """,
    "rebound_first_in_the_loop": """
        def train(p, n):
            rate = 0.1
            step = jax.jit(lambda p: p - rate)  # expect: JIT202
            for k in range(n):
                rate = 0.1 / (k + 1)
                p = step(p)
            return p
    """,
    "between_two_calls": """
        def run(x):
            scale = 2.0
            f = jax.jit(lambda v: v * scale)  # expect: JIT202
            a = f(x)
            scale = 3.0
            return a, f(x)
    """,
    "loop_target": """
        def run(x, scales):
            scale = 1.0
            f = jax.jit(lambda v: v * scale)  # expect: JIT202
            for scale in scales:
                x = f(x)
            return x
    """,
    "nonlocal_in_a_sibling": """
        def make(gain):
            @jax.jit  # expect: JIT202
            def f(x):
                return gain * x
            def tune(value):
                nonlocal gain
                gain = value
            return f, tune
    """,
    "sibling_called_in_the_loop": """
        def run(x):
            gain = 1.0
            def tune():
                nonlocal gain
                gain = gain * 2
            @jax.jit  # expect: JIT202
            def f(x):
                return gain * x
            for _ in range(3):
                x = f(x)
                tune()
            return x
    """,
    "with_target": """
        def run(x, open_scale):
            f = jax.jit(lambda v: v * scale)  # expect: JIT202
            for name in ("a", "b"):
                with open_scale(name) as scale:
                    x = f(x)
            return x
    """,
    "walrus": """
        def run(x, read):
            scale = 1.0
            f = jax.jit(lambda v: v * scale)  # expect: JIT202
            while (scale := read()) > 0:
                x = f(x)
            return x
    """,
    "unpacked": """
        def run(x, n):
            a, b = 1.0, 2.0
            f = jax.jit(lambda v: v * a + b)  # expect: JIT202
            for _ in range(n):
                x = f(x)
                a, b = b, a
            return x
    """,
    "except_and_match": """
        def run(x, commands):
            scale = 1.0
            f = jax.jit(lambda v: v * scale)  # expect: JIT202
            for command in commands:
                match command:
                    case ("scale", scale):
                        pass
                    case _:
                        x = f(x)
            return x
    """,
    "async_with": """
        async def run(x, opened):
            scale = 1.0
            f = jax.jit(lambda v: v * scale)  # expect: JIT202
            for one in opened:
                async with one as scale:
                    x = f(x)
            return x
    """,
    "generator": """
        def run(x, n):
            rate = 1.0
            f = jax.jit(lambda v: v * rate)  # expect: JIT202
            for _ in range(n):
                yield f(x)
                rate *= 0.5
    """,
    "try_and_finally": """
        def run(x, n):
            rate = 1.0
            f = jax.jit(lambda v: v * rate)  # expect: JIT202
            for _ in range(n):
                try:
                    x = f(x)
                except ValueError:
                    rate = rate / 2
            return x
    """,
    "method_local": """
        class A:
            def fit(self, x, n):
                rate = self.rate
                @jax.jit  # expect: JIT202
                def step(x):
                    return x * rate
                for _ in range(n):
                    x = step(x)
                    rate = rate / 2
                return x
    """,
    "through_a_helper_closure": """
        def run(x, n):
            rate = 1.0
            def inner(v):
                return v * rate
            f = jax.jit(lambda v: inner(v) + 1)  # expect: JIT202
            for _ in range(n):
                x = f(x)
                rate = rate / 2
            return x
    """,
    "kept_lambdas_read_late": """
        def build(n):
            fns = []
            for k in range(n):
                fns.append(jax.jit(lambda x: x * k))  # expect: JIT202
            return fns
    """,
    "kept_in_a_comprehension": """
        def build(n):
            return [jax.jit(lambda x: x * k) for k in range(n)]  # expect: JIT202
    """,
    "kept_defs_in_a_dict": """
        def build(names):
            table = {}
            for name in names:
                scale = len(name)
                @jax.jit  # expect: JIT202
                def f(x):
                    return x * scale
                table[name] = f
            return table
    """,
    "factory_that_rebinds_before_it_returns": """
        def make(scale):
            f = jax.jit(lambda x: x * scale)  # expect: JIT202
            scale += 1
            return f
    """,
    "jit_of_grad_of_closure": """
        def fit(w, data, n):
            weight = 1.0
            def loss(w, x):
                return weight * (w * x).sum()
            grad = jax.jit(jax.grad(loss))  # expect: JIT202
            for x in data:
                w = w - grad(w, x)
                weight = weight * 0.9
            return w
    """,
    # ---- silent
    "rebound_only_before": """
        def make(size, power=None):
            ramp = jnp.arange(size)
            ramp = ramp * 2
            if power is None:
                power = 2
            @jax.jit
            def f(x):
                return x * ramp**power
            return f
    """,
    "bound_once_after_the_def": """
        def make():
            @jax.jit
            def f(x):
                return x * scale
            scale = 2.0
            return f
    """,
    "passed": """
        def train(p, n):
            rate = 0.1
            @jax.jit
            def step(p, rate):
                return p - rate
            for _ in range(n):
                p = step(p, rate)
                rate *= 0.5
            return p
    """,
    "own_local_of_the_same_name": """
        def run(x, n):
            f = jax.jit(lambda scale: scale * 2)
            for scale in range(n):
                x = x + f(scale)
            return x
    """,
    "not_called_after": """
        def run(x):
            scale = 2.0
            f = jax.jit(lambda v: v * scale)
            y = f(x)
            scale = 3.0
            return y * scale
    """,
    "not_called_before": """
        def run(x):
            scale = 2.0
            f = jax.jit(lambda v: v * scale)
            scale = 3.0
            return f(x)
    """,
    "other_branch": """
        def run(x, fast):
            scale = 2.0
            f = jax.jit(lambda v: v * scale)
            if fast:
                y = f(x)
            else:
                scale = 3.0
                y = f(x)
            return y
    """,
    "default_binds_now": """
        def build(n):
            return [jax.jit(lambda x, k=k: x * k) for k in range(n)]
    """,
    "called_in_its_own_iteration": """
        def build(x, n):
            out = []
            for k in range(n):
                f = jax.jit(lambda v: v * k)  # expect: JIT101
                out.append(f(x))
            return out
    """,
    "yielded": """
        def build(n):
            for k in range(n):
                yield jax.jit(lambda v: v * k)
    """,
    "returned_from_its_iteration": """
        def find(n):
            for k in range(n):
                if k > 2:
                    return jax.jit(lambda v: v * k)
    """,
    "factory_per_iteration": """
        def make(k):
            return jax.jit(lambda v: v * k)
        def build(n):
            return [make(k) for k in range(n)]
    """,
    "trace_counter": """
        def count(x):
            traces = 0
            @jax.jit
            def f(x):
                nonlocal traces
                traces += 1
                return x
            for _ in range(3):
                f(x)
            return traces
    """,
    "static_fields_of_a_state": """
        def train(state, batches):
            @jax.jit
            def loss(params, x):
                return state.apply_fn(params, x)
            for x in batches:
                state = state.update(loss(state.params, x))
            return state
    """,
    "sibling_called_before_only": """
        def run(x):
            gain = 1.0
            def tune():
                nonlocal gain
                gain = 2.0
            tune()
            f = jax.jit(lambda v: gain * v)
            return f(x), f(x)
    """,
}

ATTRIBUTES = {
    "static_argnums": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=(0,))  # expect: JIT203
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "static_argnames": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnames="self")  # expect: JIT203
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "decorator_factory": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @jax.jit(static_argnums=0)  # expect: JIT203
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "through_methods_and_properties": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @property
            def half(self):
                return self.rate / 2
            def _scaled(self, x):
                return x * self.half
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def step(self, x):
                return self._scaled(x)
            def tune(self, rate):
                self.rate += rate
    """,
    "bound_in_init": """
        class A:
            def __init__(self):
                self.rate = 1.0
                self.step = jax.jit(self._step)  # expect: JIT203
            def _step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "bound_under_a_transform": """
        class A:
            def __init__(self):
                self.rate = 1.0
                self.grad = jax.jit(jax.value_and_grad(self._loss))  # expect: JIT203
            def _loss(self, x):
                return (x * self.rate).sum()
            def tune(self, rate):
                self.rate = rate
    """,
    "closure_over_self": """
        class A:
            def __init__(self):
                self.rate = 1.0
                @jax.jit  # expect: JIT203
                def step(x):
                    return x * self.rate
                self.step = step
            def tune(self, rate):
                self.rate = rate
    """,
    "lambda_over_self": """
        class A:
            def __init__(self):
                self.rate = 1.0
                self.step = jax.jit(lambda x: x * self.rate)  # expect: JIT203
            def tune(self, rate):
                self.rate = rate
    """,
    "property_setter": """
        class A:
            def __init__(self):
                self._rate = 1.0
            @property
            def rate(self):
                return self._rate
            @rate.setter
            def rate(self, value):
                self._rate = value
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def step(self, x):
                return x * self._rate
    """,
    "assigned_from_outside_between_two_calls": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def step(self, x):
                return x * self.rate
        def sweep(x):
            a = A()
            out = []
            for rate in range(10):
                a.rate = rate
                out.append(a.step(x))
            return out
    """,
    "local_jit_and_a_method_in_its_loop": """
        class A:
            def __init__(self):
                self.rate = 1.0
            def decay(self):
                self.rate *= 0.5
            def fit(self, x):
                step = jax.jit(lambda x: x * self.rate)  # expect: JIT203
                for _ in range(9):
                    x = step(x)
                    self.decay()
                return x
    """,
    "instance_captured_by_a_function": """
        class Config:
            def __init__(self):
                self.rate = 1.0
            def tune(self, rate):
                self.rate = rate
        config = Config()
        @jax.jit  # expect: JIT203
        def f(x):
            return x * config.rate
    """,
    "assigned_in_a_subclass": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def step(self, x):
                return x * self.rate
        class B(A):
            def tune(self, rate):
                self.rate = rate
    """,
    "fit_sets_what_predict_reads": """
        class A:
            def __init__(self):
                self.mean = 0.0
            def fit(self, x):
                self.mean = x.mean()
                return self
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def predict(self, x):
                return x - self.mean
    """,
    "class_body_jit": """
        class A:
            def __init__(self):
                self.rate = 1.0
            def _step(self, x):
                return x * self.rate
            step = jax.jit(_step, static_argnums=0)  # expect: JIT203
            def tune(self, rate):
                self.rate, self.other = rate, 1
    """,
    "cached_property": """
        import functools
        class A:
            def __init__(self):
                self.rate = 1.0
            @functools.cached_property
            def step(self):
                return jax.jit(self._step)  # expect: JIT203
            def _step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "bound_partial": """
        class A:
            def __init__(self):
                self.rate = 1.0
                self.step = jax.jit(partial(self._step, 2))  # expect: JIT203
            def _step(self, k, x):
                return k * x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "setattr": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                setattr(self, "rate", rate)
    """,
    "attribute_of_a_class": """
        class Config:
            rate = 1.0
        @jax.jit  # expect: JIT203
        def step(x):
            return x * Config.rate
        def tune(rate):
            Config.rate = rate
    """,
    "bound_method_from_outside": """
        class A:
            def __init__(self):
                self.rate = 1.0
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
        a = A()
        fast = jax.jit(a.step)  # expect: JIT203
    """,
    "instance_called_between": """
        class Dropout:
            def __init__(self, rate):
                self.rate = rate
            @partial(jax.jit, static_argnums=(0,))  # expect: JIT203
            def __call__(self, key, x):
                return x * jax.random.bernoulli(key, 1.0 - self.rate, x.shape)
        drop = Dropout(0.5)
        trained = drop(jax.random.key(0), jnp.ones(3))
        drop.rate = 0.0
        tested = drop(jax.random.key(0), jnp.ones(3))
    """,
    "property_with_a_setter": """
        class Camera:
            def __init__(self):
                self._fov = 1.0
            @property
            def fov(self):
                return self._fov
            @fov.setter
            def fov(self, value):
                self._fov = value
            @partial(jax.jit, static_argnums=(0,))  # expect: JIT203
            def project(self, points):
                return points * self.fov
    """,
    "read_in_a_base_class": """
        class Base:
            def scaled(self, x):
                return x * self.rate
        class A(Base):
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def step(self, x):
                return self.scaled(x)
            def tune(self, rate):
                self.rate = rate
    """,
    # ---- silent
    "assigned_in_init_only": """
        class A:
            def __init__(self):
                self.rate = 1.0
                self._build()
            def _build(self):
                self.size = 3
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.rate + self.size
    """,
    "post_init_and_setup": """
        class A:
            def __post_init__(self):
                self.rate = 1.0
            def setup(self):
                self.size = 2
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.rate + self.size
    """,
    "another_attribute": """
        class A:
            def __init__(self):
                self.rate = 1.0
                self.calls = 0
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.rate
            def __call__(self, x):
                self.calls += 1
                return self.step(x)
    """,
    "self_is_a_pytree": """
        @jax.tree_util.register_pytree_node_class
        class A:
            def __init__(self):
                self.rate = 1.0
            @jax.jit
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "frozen_dataclass": """
        @dataclasses.dataclass(frozen=True)
        class A:
            rate: float
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "equinox_module": """
        import equinox as eqx
        class A(eqx.Module):
            rate: float
            def __init__(self):
                self.rate = 1.0
            @eqx.filter_jit
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "flax_module": """
        import flax.linen as nn
        class A(nn.Module):
            def setup(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "hashes_by_value": """
        class A:
            def __init__(self):
                self.rate = 1.0
            def __hash__(self):
                return hash(self.rate)
            def __eq__(self, other):
                return self.rate == other.rate
            @partial(jax.jit, static_argnums=0)  # expect: JIT203
            def step(self, x):
                return x * self.rate
            def tune(self, rate):
                self.rate = rate
    """,
    "instance_called_only_after": """
        class Dropout:
            def __init__(self, rate):
                self.rate = rate
            @partial(jax.jit, static_argnums=(0,))
            def __call__(self, x):
                return x * self.rate
        drop = Dropout(0.5)
        drop.rate = 0.0
        print(drop(1.0), drop(2.0))
    """,
    "through_a_cached_property": """
        import functools
        class A:
            def __init__(self):
                self.rate = 1.0
            @functools.cached_property
            def half(self):
                return self.rate / 2
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.half
            def tune(self, rate):
                self.rate = rate
    """,
    "lazy_attribute": """
        class A:
            def __init__(self):
                self._table = None
            def table(self):
                if self._table is None:
                    self._table = jnp.arange(3)
                return self._table
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x + self._table
    """,
    "lazy_with_hasattr": """
        class A:
            def prepare(self):
                if not hasattr(self, "table"):
                    self.table = jnp.arange(3)
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x + self.table
    """,
    "configured_where_it_is_made": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @classmethod
            def load(cls, rate):
                made = A()
                made.rate = rate
                return made
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.rate
    """,
    "made_anew_on_each_call": """
        class A:
            def __init__(self):
                self.rate = 1.0
            def fit(self, x):
                @jax.jit
                def step(x):
                    return x * self.rate
                for _ in range(9):
                    x = step(x)
                return x
            def tune(self, rate):
                self.rate = rate
    """,
    "passed_as_an_argument": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=0)
            def _step(self, x, rate):
                return x * rate
            def step(self, x):
                return self._step(x, self.rate)
            def tune(self, rate):
                self.rate = rate
    """,
    "another_class_with_the_same_attribute": """
        class A:
            def __init__(self):
                self.rate = 1.0
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                return x * self.rate
        class B:
            def tune(self, rate):
                self.rate = rate
    """,
    "stored_while_tracing": """
        class A:
            def __init__(self):
                self.traces = 0
            @partial(jax.jit, static_argnums=0)
            def step(self, x):
                self.traces += 1
                return x + 1
    """,
}

# As impure and uncertain reads show in the same sources.
IMPURE = {
    "argument_of_a_helper": """
        import random
        def pick(values):
            return values[random.randrange(2)]
        @jax.jit  # expect: JIT205
        def f(x):
            noise = random.gauss(0.0, 1.0)
            return x + pick((1.0, 2.0)) + noise
    """,
    "generator_of_self": """
        class A:
            def __init__(self):
                self.rng = np.random.default_rng(0)
                self.step = jax.jit(self._step)  # expect: JIT205
            def _step(self, x):
                return x + self.rng.normal()
    """,
    "number_that_is_logged": """
        import logging
        import time
        @jax.jit
        def f(x):
            logging.info("traced at %s", time.time())
            return x
    """,
    "not_traced": """
        def f(x):
            return jnp.sin(x) * np.random.rand()
        g = jax.jit(jnp.cos)
    """,
    "in_a_host_callback": """
        @jax.jit
        def f(x):
            return jax.pure_callback(lambda v: v * np.random.rand(), x, x)
    """,
    "iterator_made_in_the_trace": """
        @jax.jit
        def f(xs):
            it = iter(xs)
            return next(it) + next(it)
    """,
    "flag_that_only_prints": """
        VERBOSE = False
        @jax.jit
        def f(x):
            if VERBOSE:
                print("traced")
            return x
        def set_verbose(value):
            global VERBOSE
            VERBOSE = value
    """,
    "local_that_is_none_at_first": """
        def make():
            scale = None
            @jax.jit  # opt-in: JIT291
            def f(x):
                return x * scale
            def load(value):
                nonlocal scale
                scale = value
            return f, load
    """,
    "set_once_by_a_loader": """
        class A:
            def __init__(self):
                self.table = None
                self.look = jax.jit(self._look)  # opt-in: JIT291
            def read(self, path):
                self.table = np.load(path)
            def _look(self, x):
                return x * self.table
    """,
}

MUTABLES = {
    "list_append": """
        TERMS = [1.0]
        @jax.jit  # expect: JIT204
        def f(x):
            return x + sum(TERMS)
        def add(term):
            TERMS.append(term)
    """,
    "dict_item": """
        CONFIG = {"a": 1}
        f = jax.jit(lambda x: x * CONFIG["a"])  # expect: JIT204
        def configure(a):
            CONFIG["a"] = a
    """,
    "dict_setdefault": """
        TABLE = {}
        f = jax.jit(lambda x: x * len(TABLE))  # expect: JIT204
        def add(key):
            TABLE.setdefault(key, 0.0)
    """,
    "dict_update": """
        CONFIG = dict(a=1)
        f = jax.jit(lambda x: x * CONFIG["a"])  # expect: JIT204
        def configure(**changes):
            CONFIG.update(changes)
    """,
    "set_add": """
        FROZEN = set()
        f = jax.jit(lambda x: x if "a" in FROZEN else 2 * x)  # expect: JIT204
        def freeze(name):
            FROZEN.add(name)
    """,
    "list_from_another_module": """
        from settings import HOOKS
        @jax.jit  # expect: JIT204
        def f(x):
            for hook in HOOKS:
                x = hook(x)
            return x
        def add(hook):
            HOOKS.append(hook)
    """,
    "numpy_item": """
        MASK = np.zeros(3)
        f = jax.jit(lambda x: x * MASK)  # expect: JIT204
        def hide(i):
            MASK[i] = 0.0
    """,
    "numpy_fill": """
        MASK = np.zeros(3)
        f = jax.jit(lambda x: x * MASK)  # expect: JIT204
        def clear():
            MASK.fill(0.0)
    """,
    "numpy_augmented_between_calls": """
        MASK = np.zeros(3)
        f = jax.jit(lambda x: x * MASK)  # expect: JIT204
        print(f(1.0))
        MASK += 1
        print(f(1.0))
    """,
    "delete": """
        TERMS = [1.0, 2.0]
        f = jax.jit(lambda x: x + sum(TERMS))  # expect: JIT204
        def drop():
            del TERMS[0]
    """,
    "sort": """
        TERMS = [1.0, 2.0]
        f = jax.jit(lambda x: x + TERMS[0])  # expect: JIT204
        def order():
            TERMS.sort()
    """,
    "copyto": """
        MASK = np.zeros(3)
        f = jax.jit(lambda x: x * MASK)  # expect: JIT204
        def update(new):
            np.copyto(MASK, new)
    """,
    "nested_item": """
        CONFIG = {"opt": {"rate": 1.0}}
        f = jax.jit(lambda x: x * CONFIG["opt"]["rate"])  # expect: JIT204
        def configure(rate):
            CONFIG["opt"]["rate"] = rate
    """,
    "local_list_in_a_loop": """
        def run(x, n):
            terms = []
            f = jax.jit(lambda x: x + sum(terms))  # expect: JIT204
            for k in range(n):
                x = f(x)
                terms.append(k)
            return x
    """,
    "parameter_with_an_item_set": """
        def make(table):
            @jax.jit  # expect: JIT204
            def f(x):
                return x * table["scale"]
            def tune(value):
                table["scale"] = value
            return f, tune
    """,
    "held_by_a_static_self": """
        class A:
            def __init__(self):
                self.mask = np.ones(3)
            @partial(jax.jit, static_argnums=0)  # expect: JIT204
            def step(self, x):
                return x * self.mask
            def hide(self, i):
                self.mask[i] = 0.0
    """,
    "through_a_helper": """
        TERMS = [1.0]
        def total():
            return sum(TERMS)
        f = jax.jit(lambda x: x + total())  # expect: JIT204
        def add(term):
            TERMS.append(term)
    """,
    # ---- silent
    "filled_before": """
        TERMS = []
        for k in range(4):
            TERMS.append(k)
        TABLE = np.zeros(3)
        TABLE[0] = 1.0
        f = jax.jit(lambda x: x * TERMS[0] + TABLE)
        print(f(1.0))
    """,
    "registry": """
        KERNELS = {}
        def register(name):
            def decorate(fn):
                KERNELS[name] = fn
                return fn
            return decorate
        @register("a")
        def a(x):
            return x
        @partial(jax.jit, static_argnames="name")
        def f(x, name):
            return KERNELS[name](x)
    """,
    "registry_decorator": """
        KERNELS = {}
        def kernel(fn):
            KERNELS[fn.__name__] = fn
            return fn
        @kernel
        def a(x):
            return x
        f = jax.jit(lambda x: KERNELS["a"](x))
    """,
    "memo": """
        CACHE = {}
        def table(n):
            if n not in CACHE:
                CACHE[n] = np.arange(n)
            return CACHE[n]
        f = jax.jit(lambda x: x + table(3))
        g = jax.jit(lambda x: x + CACHE[3])
    """,
    "log_of_traces": """
        log = []
        @jax.jit
        def f(x):
            log.append(x.shape)
            return x
        def clear():
            log.clear()
    """,
    "optimiser_update": """
        import optax
        tx = optax.adam(1e-3)
        @jax.jit
        def f(g, s):
            return tx.update(g, s)
        def other(g, s):
            return tx.update(g, s)
    """,
    "functions_of_a_module_that_lists_have_as_methods": """
        import pandas as pd
        table = pd.read_csv("table.csv")
        f = jax.jit(lambda x: jnp.sqrt(x) * table.values)
        def other(x):
            longer = table.append(x)
            return jnp.append(x, 1.0), jnp.insert(jnp.append(x, 2.0), 0, 1.0), longer
    """,
    "same_name_in_another_function": """
        TERMS = [1.0]
        f = jax.jit(lambda x: x + TERMS[0])
        def other(values):
            TERMS = list(values)
            TERMS.append(1.0)
            return TERMS
    """,
    "jax_array_at_set": """
        MASK = jnp.zeros(3)
        f = jax.jit(lambda x: x * MASK)
        def hide(i):
            return MASK.at[i].set(0.0)
    """,
    "results_collected": """
        def run(x, n):
            out = []
            f = jax.jit(lambda x: x * 2)
            for _ in range(n):
                x = f(x)
                out.append(x)
            return out
    """,
    "length_only_of_a_tuple": """
        NAMES = ("a", "b")
        f = jax.jit(lambda x: x * len(NAMES))
        def show(seen):
            seen.append(NAMES)
    """,
}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, id=f"{family}-{name}")
        for family, cases in (
            ("global", GLOBALS),
            ("local", LOCALS),
            ("attribute", ATTRIBUTES),
            ("mutable", MUTABLES),
            ("impure", IMPURE),
        )
        for name, source in cases.items()
    ],
)
def test_captured(source: str) -> None:

    expected = "JIT1" if "JIT1" in source else "JIT2"
    judge(HEAD + textwrap.dedent(source), only=expected)


def test_text_names_what_is_read_where_it_changes_and_the_remedy() -> None:
    assert text_of(HEAD + textwrap.dedent(GLOBALS["setter"])) == (
        "JIT201 the jitted code reads the global `SCALE` when it is traced, and `set_scale` rebinds it in line 15: a call "
        "that is not traced again keeps the old value; pass `SCALE` as an argument"
    )


def test_text_names_the_loop_that_rebinds() -> None:
    assert text_of(HEAD + textwrap.dedent(LOCALS["kept_lambdas_read_late"])) == (
        "JIT202 the jitted code reads the captured local `k` at its first call, not where it is made, and it is rebound "
        "by the loop in line 11: it sees the later value; pass `k` as an argument, or bind it there with a default `k=k`"
    )


def test_text_says_why_an_attribute_goes_stale() -> None:
    assert text_of(HEAD + textwrap.dedent(ATTRIBUTES["static_argnums"])) == (
        "JIT203 the jitted code reads `self.rate` when it is traced, since its object is not a traced argument, and "
        "`tune` assigns it in line 16: a call that is not traced again keeps the old value; pass `self.rate` as an argument"
    )


def test_text_names_the_mutation() -> None:
    assert text_of(HEAD + textwrap.dedent(MUTABLES["list_append"])).startswith(
        "JIT204 the jitted code reads `TERMS` when it is traced, and `add` mutates it in line 14: "
    )


STATIC_REMEDIES = {
    "branches": ("LEVEL", "x if LEVEL > 2 else -x", "pass `LEVEL` as a static argument, as the code branches on it"),
    "calls": ("LEVEL", "LEVEL(x)", "pass `LEVEL` as a static argument, as the code calls it"),
    "counts": ("LEVEL", "sum(x for _ in range(LEVEL + 1))", "as a static argument, as the code counts with it"),
    "makes an array": (
        "LEVEL",
        "jnp.zeros((2, LEVEL + 1)) * x",
        "as the code takes a shape, an axis or a length from it",
    ),
    "reduces": ("LEVEL", "x.sum(axis=LEVEL)", "as the code takes a shape, an axis or a length from it"),
    "transforms": ("LEVEL", "jax.grad(LEVEL)(x)", "as the code calls it"),
    "indexes": ("LEVEL", "jnp.take(x, LEVEL)", "pass `LEVEL` as an argument"),
    "computes": ("LEVEL", "x * LEVEL", "pass `LEVEL` as an argument"),
    "asks for None": ("LEVEL", "x if LEVEL is None else x * LEVEL", "pass `LEVEL` as an argument"),
}


@pytest.mark.parametrize(("name", "body", "remedy"), STATIC_REMEDIES.values(), ids=STATIC_REMEDIES)
def test_what_python_needs_is_to_be_static(name: str, body: str, remedy: str) -> None:
    source = f"""
import jax
import jax.numpy as jnp
{name} = 1
f = jax.jit(lambda x: {body})
def set_level(value):
    global {name}
    {name} = value
"""
    assert text_of(source).endswith(remedy)


def test_a_set_is_to_be_a_static_argument() -> None:
    assert text_of(HEAD + textwrap.dedent(MUTABLES["set_add"])).endswith("pass it as a static argument, as a frozenset")


def test_a_container_the_code_branches_on_is_to_be_static() -> None:
    source = """
import jax
FLAGS = {"deep": False}
f = jax.jit(lambda x: 2 * x if FLAGS["deep"] else x)
def configure(value):
    FLAGS["deep"] = value
"""
    assert text_of(source).endswith("pass what the code branches on as a static argument")


def test_wrong_results_win_over_retraces_at_one_place() -> None:
    judge(
        """
        import jax

        def f(x):
            rate = 1.0
            for _ in range(9):
                x = jax.jit(lambda v: v * rate)(x)  # expect: JIT101
                rate = 0.5
            return x

        class A:
            def __init__(self):
                self.rate = 1.0
            def decay(self):
                self.rate *= 0.5
            def fit(self, x):
                step = jax.jit(self.step)  # expect: JIT203
                for _ in range(9):
                    x = step(x)
                    self.decay()
                return x
            def step(self, x):
                return x * self.rate
        """
    )
