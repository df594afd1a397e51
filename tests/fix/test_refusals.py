"""What can't be fixed is left exactly as it is, with a true reason in one line."""

from __future__ import annotations

from textwrap import dedent

import pytest
from test_meaning import HEAD, fix

REFUSED = {
    "donated": (
        """
        def step(x, k):
            return jax.jit(lambda v: v * k, donate_argnums=0)(x)
        """,
        "it captures `k`: with `donate_argnums`, an array could be donated and passed as well",
    ),
    "gradient_counts_from_the_end": (
        """
        def step(x, y, k):
            return jax.jit(jax.grad(lambda a, b: (a * b * k).sum(), argnums=-1))(x, y)
        """,
        "`jax.grad` may count its `argnums` from the end, where more come",
    ),
    "gradient_of_a_jitted_def_counts_from_the_end": (
        """
        def step(x, y, k):
            @jax.jit
            def loss(a, b):
                return (a * b * k).sum()
            return jax.value_and_grad(loss, (0, -1))(x, y)
        """,
        "`jax.value_and_grad` may count its `argnums` from the end, where more come",
    ),
    "function_is_imported_inside": (
        """
        def step(x):
            from physics import couple
            return jax.jit(couple)(x)
        """,
        "`couple` is imported inside `step`; at module level it would be needed at import",
    ),
    "factory_gets_a_list": (
        """
        def make(sizes):
            return jax.jit(lambda v: v * len(sizes))
        def step(x):
            return make([1, 2])(x)
        """,
        "`make` is called with a list, which can't be hashed",
    ),
    "item_of_a_dict_counts": (
        """
        def step(x, config):
            return jax.jit(lambda v: sum(v for _ in range(config["depth"])))(x)
        """,
        "`config` has to be static, and a dict can't be hashed",
    ),
    "name_of_the_function_is_read": (
        """
        def step(x):
            @jax.jit
            def double(v):
                return v * 2
            return double(x), double.__name__
        """,
        "line 5 uses its attribute `__name__`",
    ),
    "shardings": (
        """
        def step(x, k):
            return jax.jit(lambda v: v * k, in_shardings=None)(x)
        """,
        "it captures `k`, and `in_shardings` fits the parameters that it has",
    ),
    "option_is_a_local_list": (
        """
        def step(x):
            numbers = [0]
            return jax.jit(lambda v: v, donate_argnums=numbers)(x)
        """,
        "the option `donate_argnums` reads the local `numbers`",
    ),
    "option_is_a_lambda": (
        """
        def step(x):
            return jax.jit(lambda v: v, device=lambda: None)(x)
        """,
        "the option `device` is made on each call",
    ),
    "options_by_position_through_a_star": (
        """
        def step(x, options):
            return jax.jit(lambda v: v, *options)(x)
        """,
        "the jit gets options by position",
    ),
    "pmap_splits_arguments": (
        """
        def step(x, k):
            return jax.pmap(lambda v: v * k)(x)
        """,
        "it captures `k`, and `pmap` would split an argument along its first axis",
    ),
    "appends_while_traced": (
        """
        def step(x):
            seen = []
            y = jax.jit(lambda v: seen.append(v) or v)(x)
            return y, len(seen)
        """,
        "line 3 changes `seen` while it is traced",
    ),
    "rebinds_a_local": (
        """
        def step(x):
            count = 0
            @jax.jit
            def inner(v):
                nonlocal count
                count += 1
                return v
            return inner(x), count
        """,
        "line 5 rebinds `count` outside of the jitted function",
    ),
    "assigns_to_self": (
        """
        class Model:
            def step(self, x):
                @jax.jit
                def inner(v):
                    self.last = 3
                    return v
                return inner(x)
        """,
        "line 5 assigns to `self.last` while it is traced",
    ),
    "calls_a_method": (
        """
        class Model:
            def step(self, x):
                return jax.jit(lambda v: self.forward(v))(x)
        """,
        "it calls `self.forward`",
    ),
    "calls_a_local_function": (
        """
        def step(x):
            def helper(v):
                return v
            return jax.jit(lambda v: helper(v))(x)
        """,
        "it uses `helper`, which is itself made on each call",
    ),
    "helper_reads_a_changing_global": (
        """
        RATE = 1.0

        def faster():
            global RATE
            RATE = 2.0

        def helper(v):
            return v * RATE

        def step(x):
            return jax.jit(lambda v: helper(v))(x)
        """,
        "`helper`, which it calls, reads the global `RATE`, which changes",
    ),
    "default_reads_a_local": (
        """
        def step(xs):
            return [jax.jit(lambda v, i=i: v * i)(x) for i, x in enumerate(xs)]
        """,
        "`i` is known inside the function only",
    ),
    "vmap_would_map_what_is_captured": (
        """
        def step(xs, k):
            return jax.jit(jax.vmap(lambda v: v * k))(xs)
        """,
        "it captures `k`, and `jax.vmap` would not pass more arguments on as they are",
    ),
    "transform_of_a_parameter": (
        """
        def step(f, xs):
            return jax.jit(jax.vmap(f))(xs)
        """,
        "it is made of the parameter `f`",
    ),
    "method_reads_what_another_assigns": (
        """
        class Model:
            def __init__(self):
                self.rate = 1.0
            def faster(self):
                self.rate = 2.0
            def scaled(self, x):
                return x * self.rate
            def step(self, x):
                return jax.jit(self.scaled)(x)
        """,
        "`scaled` reads `self.rate`, which line 5 assigns",
    ),
    "dataclass_takes_no_attribute": (
        """
        import dataclasses

        @dataclasses.dataclass(frozen=True)
        class Model:
            rate: float
            def scaled(self, x):
                return x * 2
            def step(self, x):
                return jax.jit(self.scaled)(x)
        """,
        "`Model` may not take new attributes",
    ),
    "method_jitted_in_a_nested_function": (
        """
        class Model:
            def __init__(self):
                self.rate = 1.0
            def scaled(self, x):
                return x * self.rate
            def step(self, x):
                def inner():
                    return jax.jit(self.scaled)(x)
                return inner()
        """,
        "it is jitted in a function inside the method",
    ),
    "recursive": (
        """
        def step(x):
            @jax.jit
            def inner(v, n=2):
                return v if n == 0 else inner(v, n - 1)
            return inner(x)
        """,
        "it calls itself",
    ),
    "other_parameters": (
        """
        def step(x, k):
            return jax.jit(lambda v, **options: v * k)(x, a=1)
        """,
        "`**options` leaves no place for more parameters",
    ),
    "equal_literals_of_different_types": (
        """
        def make(n):
            return jax.jit(lambda v: v * n)

        def step(x):
            return make(1)(x) + make(1.0)(x)
        """,
        "`make` is called with equal literals of different types, which a cache takes as one",
    ),
    "generator_without_parentheses": (
        """
        def step(xs, k):
            return jax.jit(lambda vs: vs * k)(x for x in xs)
        """,
        "line 2 passes a generator without parentheses of its own",
    ),
    "staged_and_kept": (
        """
        def step(x, k):
            lowered = jax.jit(lambda v: v * k).lower(x)
            return lowered.compile()(x)
        """,
        "what it is staged to in line 2 is kept under a name",
    ),
    "several_functions": (
        """
        def step(x, k, flag):
            if flag:
                f = lambda v: v * k
            else:
                f = lambda v: v + k
            return jax.jit(f)(x)
        """,
        "`f` may be one of several functions",
    ),
    "private_names": (
        """
        class Model:
            def step(self, x, __k):
                return jax.jit(lambda v: v * __k)(x)
        """,
        "`__k` means another name outside of the class",
    ),
    "used_without_its_jit": (
        """
        def step(x):
            def double(v):
                return v * 2
            return jax.jit(double)(x) + double(x)
        """,
        "`double` is used without its jit as well",
    ),
    "options_through_stars": (
        """
        def step(x, **options):
            return jax.jit(lambda v: v, **options)(x)
        """,
        "the jit gets options through `**`",
    ),
    "partial_binds_a_star": (
        """
        def f(a, b, v):
            return a * b * v

        def step(x, ab):
            return jax.jit(functools.partial(f, *ab))(x)
        """,
        "the partial binds `*`",
    ),
    "partial_binds_two_stars": (
        """
        def f(v, a):
            return a * v

        def step(x, given):
            return jax.jit(functools.partial(f, **given))(x)
        """,
        "the partial binds `**`",
    ),
    "call_may_pass_what_the_partial_binds": (
        """
        def f(v, a):
            return a * v

        def step(x, a, given):
            return jax.jit(functools.partial(f, a=a))(x, **given)
        """,
        "line 5 may pass what the partial binds",
    ),
    "factory_has_a_decorator": (
        """
        from elsewhere import logged

        @logged
        def make(k):
            return jax.jit(lambda v: v * k)

        def step(x):
            return make(2)(x)
        """,
        "`make` has a decorator already",
    ),
    "factory_is_a_method": (
        """
        class Model:
            def make(self, k):
                return jax.jit(lambda v: v * k)
            def step(self, x):
                return self.make(2)(x)
        """,
        "a cache on the method `make` would keep each object alive",
    ),
    "factory_reads_a_changing_global": (
        """
        RATE = 1.0

        def faster():
            global RATE
            RATE = 2.0

        def make():
            return jax.jit(lambda v: v * RATE)

        def step(x):
            return make()(x)
        """,
        "`make` reads the global `RATE`, which changes",
    ),
    "static_numbers_from_the_end": (
        """
        def step(x, k):
            return jax.jit(lambda v, n: v * n * k, static_argnums=-1)(x, 2)
        """,
        "`static_argnums` counts from the end, or fits no parameter",
    ),
    "reads_a_path_and_its_root": (
        """
        def step(x, model):
            return jax.jit(lambda v: v * model.rate + model)(x)
        """,
        "it reads both `model` and `model.rate`",
    ),
}

ASSUMES = {
    "option_made_on_each_call": (
        """
        from elsewhere import best_device

        def step(x):
            return jax.jit(lambda v: v, device=best_device())(x)
        """,
        "`best_device()` can be hashed and does not change, equal values are of one type, and only few different ones come",
    ),
    "option_reads_a_local": (
        """
        def step(x, n):
            return jax.jit(lambda m, v: v, static_argnums=n)(1, x)
        """,
        "`n` can be hashed and does not change, equal values are of one type, and only few different ones come",
    ),
    "option_reads_an_attribute": (
        """
        class Model:
            def step(self, x):
                return jax.jit(lambda v: v, out_shardings=self.sharding)(x)
        """,
        "`self.sharding` can be hashed and does not change, equal values are of one type, and only few different ones come",
    ),
    "transform_reads_a_number": (
        """
        def step(x, n):
            return jax.jit(jax.vmap(lambda v: v.reshape(n)))(x)
        """,
        "`n` can be hashed and does not change, equal values are of one type, and only few different ones come",
    ),
    "power_of_two_captured_numbers": (
        """
        def step(x, base, n):
            return jax.jit(lambda v: v * base**n)(x)
        """,
        "`base` is hashable, and that `n` is hashable",
    ),
    "power_of_a_literal": (
        """
        def step(x, n):
            return jax.jit(lambda v: v * 10**n)(x)
        """,
        "`n` is hashable",
    ),
    "partial_of_a_loop_with_a_function": (
        """
        def step(x, body):
            return jax.jit(functools.partial(jax.lax.scan, body))(x, x)
        """,
        "`body` is hashable and compares equal from call to call",
    ),
    "prints": (
        """
        def step(x):
            @jax.jit
            def inner(v):
                print("traced")
                return v
            return inner(x)
        """,
        "`print` in line 4 may run once per trace, not on each call",
    ),
    "default_with_a_call": (
        """
        import time

        def step(x):
            @jax.jit
            def inner(v, now=time.time()):
                return v * now
            return inner(x)
        """,
        "the default `time.time()` may be evaluated once",
    ),
    "read_on_one_branch_only": (
        """
        def step(x, k, mask):
            @jax.jit
            def inner(v):
                if k is None:
                    return v
                return v * k * mask.value
            return inner(x)
        """,
        "`mask.value` can be read at every call, also where the function would not need it",
    ),
    "decides_control_flow": (
        """
        def step(x, deep):
            return jax.jit(lambda v: v if deep else -v)(x)
        """,
        "`deep` is hashable",
    ),
    "passed_to_something_unknown": (
        """
        from elsewhere import helper

        def step(x, table):
            return jax.jit(lambda v: helper(v, table))(x)
        """,
        "`table` holds arrays and numbers only, and none of them decides a shape or control flow",
    ),
    "passed_on_and_not_used": (
        """
        def helper(v, word):
            return v * 2

        def step(x, word):
            return jax.jit(lambda v: helper(v, word))(x)
        """,
        "`word` holds arrays and numbers only, and none of them decides a shape or control flow",
    ),
    "method_that_not_only_arrays_have": (
        """
        def step(x, table):
            return jax.jit(lambda v: v * table.sum())(x)
        """,
        "`table` holds arrays and numbers only, and none of them decides a shape or control flow",
    ),
    "settings_of_another_module": (
        """
        import settings

        def step(x):
            return jax.jit(lambda v: v * settings.rate)(x)
        """,
        "`settings.rate` does not change between calls",
    ),
    "array_decides_a_shape_through_a_helper": (
        """
        def helper(v, n):
            m = n + 1
            return v.reshape(m, -1)

        def step(x, n):
            return jax.jit(lambda v: helper(v, n))(x)
        """,
        "`n` is hashable",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason_even_with_unsafe(name: str) -> None:
    source, reason = REFUSED[name]
    text = HEAD + dedent(source).strip("\n") + "\n"
    done = fix(text, unsafe=True)
    lines = len(HEAD.splitlines())
    expected = reason
    for number in range(9, 0, -1):
        expected = expected.replace(f"line {number} ", f"line {number + lines} ")
    assert {left.reason for left in done.left} == {expected}
    assert done.text == text


@pytest.mark.parametrize("name", ASSUMES)
def test_safe_fix_is_refused_with_what_unsafe_assumes(name: str) -> None:
    source, assumption = ASSUMES[name]
    text = HEAD + dedent(source).strip("\n") + "\n"
    lines = len(HEAD.splitlines())
    for number in range(9, 0, -1):
        assumption = assumption.replace(f"line {number} ", f"line {number + lines} ")
    done = fix(text)
    assert done.text == text
    assert len(done.left) == 1
    assert done.left[0].reason.startswith("needs --unsafe, which assumes that ")
    assert assumption in done.left[0].reason
    assert not fix(text, unsafe=True).left


@pytest.mark.parametrize("change", ["table[0] = 5", "table = table * 2", "table += 1"])
def test_what_may_be_stale_on_purpose_is_left_to_the_codes_about_wrong_results(change: str) -> None:
    source = f"""
        def step(x):
            table = np.ones(3)
            f = jax.jit(lambda v: v * table)
            first = f(x)
            {change}
            return first, f(x)
        """
    text = HEAD + dedent(source).strip("\n") + "\n"
    assert fix(text).text == text
