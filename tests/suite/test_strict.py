"""`--jitcache-strict`: which tests fail, which don't, and with what text."""

from __future__ import annotations

import re

import jax
import pytest
from small_suite import HEAD, Suite

STRICT = ("--jitcache-strict", "-rfEp")

RETRACING = """
def test_lambda():
    for _ in range(3): reverse(jnp.arange(8))

def scale(k, x): return k * x
def test_partial():
    for _ in range(3): jax.jit(functools.partial(scale, 2.0))(jnp.ones(3))

@jax.jit
def low(x, cut): return jnp.where(x < cut, x, cut)
def test_weak_type(): low(jnp.ones(3), 0.5); low(jnp.ones(3), jnp.float32(0.5))

class Model:
    k = 2
    def step(self, x): return self.k * x
def test_method():
    model = Model()
    for _ in range(2): jax.jit(model.step)(jnp.ones(3))

def multiply(w, x): return jax.jit(lambda x: x * w)(x)
def test_captured_array():
    for k in range(2): multiply(jnp.full(3, k), jnp.ones(3))

class TestCase(unittest.TestCase):
    def test_unittest(self):
        for _ in range(2): reverse(jnp.arange(8))

def test_thread():
    for _ in range(2):
        thread = threading.Thread(target=reverse, args=(jnp.arange(8),)); thread.start(); thread.join()

def double(x): return 2 * x
def test_vmap():
    for _ in range(3): jax.jit(jax.vmap(double))(jnp.ones(3))

def cast(x, dtype, part): return jax.jit(lambda x: x[part].astype(dtype))(x)
def test_captured_dtype_and_slice():
    for _ in range(2): cast(jnp.ones(3), jnp.ones(3).dtype, slice(2))

def test_checkpoint():
    for _ in range(2): jax.jit(jax.checkpoint(lambda x: jnp.sin(x)))(jnp.ones(3))

def test_pmap():
    for _ in range(2): jax.pmap(lambda x: 2 * x)(jnp.ones((1, 3)))

def test_eager_fori_loop():
    for _ in range(2): jax.lax.fori_loop(0, 3, lambda i, x: x + i, jnp.ones(3))

def total(xs): return jax.lax.scan(lambda c, x: (c + x, None), 0.0, xs)
def test_eager_scan():
    for _ in range(2): total(jnp.ones(4))
"""

CONTENT = """
def test_several_shapes():
    step = jax.jit(lambda x: 2 * x)
    for n in (1, 2, 3, 1, 2, 3): step(jnp.ones(n))

@pytest.fixture
def made(): return [jax.jit(lambda x, k=k: x * k) for k in range(3)]
def test_three_kept_products_of_one_factory(made):
    for _ in range(2):
        for step in made: step(jnp.ones(3))

def check(fn): return jax.jit(lambda x: fn(x))(jnp.ones(3))
def test_helper_that_jits_other_functions():
    for fn in (jnp.sin, jnp.cos, lambda x: x, lambda x: x + 1): check(fn)

def power(n, x): return x ** n
def test_partials_of_other_values():
    for n in range(3): jax.jit(functools.partial(power, n))(jnp.ones(3))

class Model:
    def __init__(self, width): self.width = width
    def step(self, x): return jnp.tile(x, self.width)
def test_methods_of_other_models():
    for width in (1, 2, 3): jax.jit(Model(width).step)(jnp.ones(3))

class Config:
    def __init__(self, n): self.n = n
@functools.partial(jax.jit, static_argnums=0)
def configured(config, x): return x * config.n
def test_static_objects_that_hold_other_things():
    for n in (1, 2): configured(Config(n), jnp.ones(3))

@jax.jit
def broken(x): raise ValueError
def test_traces_that_raise():
    for _ in range(3):
        with pytest.raises(ValueError): broken(1.0)

def test_traces_only_looked_at():
    for _ in range(3):
        jax.make_jaxpr(lambda x: x + 1)(1.0)
        jax.eval_shape(lambda x: x + 1, 1.0)
        jax.jit(lambda x: x + 2).lower(1.0)

def double(x): return 2 * x
def test_aot_on_fresh_wrappers_of_a_traced_function():
    jax.jit(double)(1.0)
    for _ in range(3): jax.jit(double).lower(1.0).compile()

def test_functions_inside_a_trace():
    step = jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + y, None), 0.0, x))
    step(jnp.ones(3)); step(jnp.ones(4))

def test_jaxs_own_helpers():
    for _ in range(3): jnp.clip(jnp.ones(3), 0, 1); jax.random.normal(jax.random.key(0), (3,))

def test_one_trace_a_test(): reverse(jnp.arange(8))
def test_one_trace_a_later_test(): reverse(jnp.arange(8))

@pytest.fixture
def data():
    for _ in range(3): reverse(jnp.arange(8))
def test_traces_in_fixtures(data): pass

def test_jit_switched_off():
    with jax.disable_jit():
        for _ in range(3): reverse(jnp.arange(8))
"""


def names(source: str) -> list[str]:
    return re.findall(r"def (test_\w+)", source)


@pytest.fixture(scope="module")
def all_at_once(tmp_path_factory):
    suite = Suite(tmp_path_factory.mktemp("strict"))
    suite.write("test_content.py", HEAD + CONTENT)
    return suite("import threading, unittest\n" + RETRACING, *STRICT)


@pytest.mark.parametrize("name", names(RETRACING))
def test_retrace_fails(all_at_once, name):
    if name == "test_pmap" and jax.__version_info__[:2] == (0, 8):
        pytest.skip("JAX 0.8 keeps the function of a pmap alive")
    assert name in [one.rpartition("::")[2] for one in all_at_once.failed]


@pytest.mark.parametrize("name", names(CONTENT))
def test_no_false_alarm(all_at_once, name):
    assert f"PASSED test_content.py::{name}\n" in all_at_once.output


def test_failure_has_the_fixtures_text_and_the_users_line(suite):
    run = suite(
        """
        def test_it():
            x = jnp.arange(8)
            for _ in range(3):
                reverse(x)  # here
        """,
        *STRICT,
    )
    for part in (
        "<lambda> traced 3x, allowed 1: new function object",
        "The lambda in `reverse` is defined at test_it.py:7.",
        "b: i32[8]",
        "why: ",
        "fix: ",
        "jitcache_allow",
        ">           reverse(x)  # here",
    ):
        assert part in run.output
    assert "pytest_jitcache/" not in run.output
    assert "/jax/" not in run.output


DOCTEST = """
def total(x):
    \'\'\'
    >>> for _ in range(2): _ = reverse(jnp.arange(8))
    \'\'\'
"""

ITEM = """
import pytest
def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".case": return Case.from_parent(parent, path=file_path)
class Case(pytest.File):
    def collect(self): yield CaseItem.from_parent(self, name="case")
class CaseItem(pytest.Item):
    def runtest(self):
        from test_it import reverse, jnp
        for _ in range(2): reverse(jnp.arange(8))
"""


@pytest.mark.parametrize("args", [["--doctest-modules", "test_it.py"], ["a.case"]], ids=["doctest", "custom item"])
@pytest.mark.parametrize("verbosity", ["-v", "-vv"])
def test_item_without_code_shows_the_text_alone(suite, args, verbosity):
    suite.write("conftest.py", ITEM)
    suite.write("a.case", "")
    run = suite(DOCTEST, *STRICT, *args, verbosity)
    assert run.status == 1
    section = run.output.partition("= FAILURES =")[2].partition("short test summary")[0].splitlines()
    assert section[2].startswith("<lambda> traced 2x, allowed 1: new function object")
    assert ("all that is known:" in section) == (verbosity == "-vv")
    for other in ("_pytest", "pluggy", "pytest_jitcache/"):
        assert other not in "\n".join(section)
    assert "new function object at " in run.output.partition("short test summary")[2]


def test_mark_on_a_test_without_code_shows_the_text_alone(suite):
    suite.write(
        "conftest.py",
        ITEM
        + """
def pytest_collection_modifyitems(items):
    items[0].add_marker(pytest.mark.traced_once("test_it.nothing"))
""",
    )
    suite.write("a.case", "")
    run = suite("", "a.case", "--no-header")
    assert run.status == 1
    assert "names 'test_it.nothing'" in run.output
    for other in ("_pytest", "pluggy", "pytest_jitcache/"):
        assert other not in run.output


def test_very_verbose_shows_what_jax_itself_says(suite):
    run = suite(
        """
        def test_it():
            x = jnp.arange(8)
            for _ in range(3):
                reverse(x)
        def teardown_function():
            assert not jax.config.jax_explain_cache_misses
        """,
        *STRICT,
        "-vv",
    )
    known = run.output.partition("all that is known")[2]
    assert known.count("TRACING CACHE MISS at ") == 3
    assert "1 failed in" in run.output  # and no error in the teardown
    assert "Captured" not in run.output  # what was asked for our sake goes nowhere else


def test_very_verbose_shows_what_followed_from_each_trace(suite):
    run = suite("def test_it(): reverse(jnp.arange(8)); reverse(jnp.arange(8))", *STRICT, "-vv")
    known = r"traced for jit; lambda; trace [\d.]+ ms, lower [\d.]+ ms, compile [\d.]+ ms; 1 compile$"
    assert len(re.findall(known, run.output, re.MULTILINE)) == 2


def test_worst_function_first_and_the_others_named(suite):
    run = suite(
        """
        @jax.jit
        def low(x, cut): return x < cut
        def test_it():
            low(1.0, 0.5); low(1.0, jnp.float32(0.5))
            for _ in range(3): reverse(jnp.arange(8))
        """,
        *STRICT,
    )
    assert "<lambda> traced 3x" in run.output
    assert "also: low 2x" in run.output


def test_copies_in_two_files_are_two_functions(suite):
    for name in ("first.py", "second.py"):
        suite.write(name, "import jax\ndef run(x): return jax.jit(lambda x: x + 1)(x)\n")
    run = suite(
        """
        import first, second
        def test_it(): first.run(1.0); second.run(1.0)
        """,
        *STRICT,
        "--jitcache-summary",
    )
    assert run.status == 0
    assert "wasted:" not in run.output


def test_own_failure_is_kept(suite):
    run = suite(
        """
        import unittest
        def test_plain():
            for _ in range(3): reverse(jnp.arange(8))
            assert 1 == 2, "my own"
        class Case(unittest.TestCase):
            def test_case(self):
                for _ in range(3): reverse(jnp.arange(8))
                self.assertEqual(1, 2, "my own too")
        """,
        *STRICT,
    )
    assert len(run.failed) == 2
    assert "my own" in run.output
    assert "my own too" in run.output
    assert "allowed 1" not in run.output


def test_skip_stays_a_skip(suite):
    run = suite(
        """
        def test_it():
            for _ in range(3): reverse(jnp.arange(8))
            pytest.skip("not here")
        """,
        *STRICT,
    )
    assert run.status == 0
    assert "1 skipped" in run.output


def test_strict_expected_failure_composes(suite):
    run = suite(
        """
        @pytest.mark.xfail(strict=True)
        def test_retraces():
            for _ in range(3): reverse(jnp.arange(8))
        @pytest.mark.xfail(strict=True)
        def test_does_not():
            reverse(jnp.arange(8))
        """,
        *STRICT,
    )
    assert run.failed == ["test_does_not"]
    assert "1 xfailed" in run.output


def test_guard_judges_alone(suite):
    run = suite(
        """
        def test_holds(assert_traced_once):
            with assert_traced_once(reverse, max_traces=3):
                for _ in range(3): reverse(jnp.arange(8))
        def test_fails(assert_traced_once):
            guarded = assert_traced_once(reverse)
            for _ in range(3): guarded(jnp.arange(8))
        """,
        *STRICT,
    )
    assert run.failed == ["test_fails"]
    assert "traced 2x, allowed 1" in run.output
    assert "jitcache_allow" not in run.output


def test_async_test_is_judged(suite):
    pytest.importorskip("anyio")
    run = suite(
        """
        @pytest.mark.anyio
        async def test_it():
            for _ in range(2): reverse(jnp.arange(8))
        @pytest.fixture
        def anyio_backend(): return "asyncio"
        """,
        *STRICT,
    )
    assert run.failed == ["test_it"]


def test_examples_of_one_property_count_together(suite):
    pytest.importorskip("hypothesis")
    run = suite(
        """
        from hypothesis import given, settings, strategies as st
        step = jax.jit(lambda x: x + 1)
        @settings(max_examples=5, deadline=None)
        @given(st.integers(0, 9))
        def test_kept(k): step(jnp.full(3, k))
        @settings(max_examples=5, deadline=None)
        @given(st.integers(0, 9))
        def test_made_anew(k): reverse(jnp.full(3, k))
        """,
        *STRICT,
    )
    assert run.failed == ["test_made_anew"]


def test_no_strict_on_the_command_line_wins(suite):
    suite.write("pytest.ini", "[pytest]\njitcache_strict = true\n")
    source = """
        def test_it():
            for _ in range(3): reverse(jnp.arange(8))
    """
    assert suite(source).status == 1
    assert suite(None, "--no-jitcache-strict").status == 0


def test_mark_exempts(suite):
    run = suite(
        """
        @pytest.mark.jitcache_allow(reason="compares two builds")
        def test_it():
            for _ in range(3): reverse(jnp.arange(8))
        """,
        *STRICT,
        "--jitcache-json=run.json",
    )
    assert run.status == 0
    assert run.json["tests"][-1]["allowed"] == "compares two builds"


@pytest.mark.parametrize(
    "mark", ["jitcache_allow", 'jitcache_allow("x")', 'jitcache_allow(reason="")', "jitcache_allow(why=1)"]
)
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_mark_without_reason_is_an_error_of_its_test(suite, mark, workers):
    if workers:
        pytest.importorskip("xdist")
    run = suite(
        f"""
        @pytest.mark.{mark}
        def test_it(): pass
        def test_other(): pass
        """,
        *STRICT,
        *workers,
    )
    assert run.status == 1
    assert "1 passed, 1 error in " in run.output
    lines = run.output.partition("ERROR at setup of test_it")[2].partition("= PASSES")[0].splitlines()
    text = 'test_it.py::test_it: the mark jitcache_allow takes one argument, reason="why it is traced again"; got '
    assert [line.startswith(text) for line in lines if line].count(True) == 1
    assert "_pytest" not in run.output


@pytest.mark.parametrize(("name", "status"), [("test_it.reverse.<lambda>", 0), ("test_*.rev*", 0), ("other.*", 1)])
def test_ini_exempts_functions(suite, name, status):
    suite.write("pytest.ini", f"[pytest]\njitcache_allow =\n    # known\n    {name}\n")
    run = suite(
        """
        def test_it():
            for _ in range(3): reverse(jnp.arange(8))
        """,
        *STRICT,
    )
    assert run.status == status


def test_name_that_a_failure_suggests_is_allowed(suite):
    suite.write("test-dash.py", HEAD + "def test_it(): reverse(jnp.arange(8)); reverse(jnp.arange(8))")
    name = re.search(r"or `(\S+)` in the ini option jitcache_allow", suite(None, *STRICT, "test-dash.py").output)[1]
    suite.write("pytest.ini", f"[pytest]\njitcache_allow = {name}\n")
    assert suite(None, *STRICT, "test-dash.py").status == 0
