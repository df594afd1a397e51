"""Question 3: does a function run once, or often? What is certain, and each kind of evidence."""

import ast

import pytest
from sources import Inline, found, inline

from flake8_jitcache.facts.frequency import EVIDENCE, Frequency
from flake8_jitcache.facts.module import Module
from flake8_jitcache.options import Options

ONCE = inline("""\
== main
def main():
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== async main
async def main():
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== _main
def _main(argv):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== the name guard
if __name__ == "__main__":
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== the name guard, the other way round
if "__main__" == __name__:
    jax.jit(lambda v: v + 1)(1.0)
== it loops while there are steps to do
def quantity(state, devices):
    ids = jax.pmap(lambda v: v)(devices)  # opt-in: JIT191
    with state.log():
        while state.should_run_step(state.global_step):
            state = state.step(ids)
    return state
== what is jitted initialises parameters
import flax.linen as nn
import jax


def quantity(key, x):
    model = nn.Dense(3)
    return jax.jit(model.init)(key, x)  # opt-in: JIT191


def quality(key, x):
    model = nn.Dense(3)
    params = jax.jit(lambda k: model.init(k, x)["params"])(key)  # opt-in: JIT191
    return model, params


def ensemble(keys, x):
    model = nn.Dense(3)

    @jax.jit  # opt-in: JIT191
    @jax.vmap
    def init(key):
        return model.init(key, x)

    return init(keys), jax.jit(jax.vmap(model.init, (0, None)))(keys, x)  # opt-in: JIT191
== what is jitted initialises an optimizer's state
import jax
import optax


def quantity(params):
    tx = optax.adam(1e-3)
    return tx, jax.jit(tx.init)(params)  # opt-in: JIT191
== called from main
def stage(x):
    return jax.jit(lambda v: v + 1)(x)  # opt-in: JIT191


def main():
    print(stage(1.0))
== called from what main calls
def inner(x):
    return jax.jit(lambda v: v + 1)(x)  # opt-in: JIT191


def outer(x):
    return inner(x)


def main():
    print(outer(1.0))
== called under the name guard
def stage(x):
    return jax.jit(lambda v: v + 1)(x)  # opt-in: JIT191


if __name__ == "__main__":
    stage(1.0)
== called at module level
def stage(x):
    return jax.jit(lambda v: v + 1)(x)  # opt-in: JIT191


READY = stage(1.0)
== a click command
import click
import jax


@click.command()
@click.argument("name")
def serve(name):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== a command of a click group
import click
import jax


@click.group()
def cli():
    pass


@cli.command()
def serve():
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== a typer command
import jax
import typer

app = typer.Typer()


@app.command()
def serve(name: str):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== a hydra main
import hydra
import jax


@hydra.main(config_path="conf")
def serve(config):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== handed to absl
import jax
from absl import app


def serve(argv):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191


if __name__ == "__main__":
    app.run(serve)
== handed to fire
import fire
import jax


def serve(name):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191


fire.Fire(serve)
== handed to fire in a table and in a list
import fire
import jax


def serve(name):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191


def stop(name):
    jax.jit(lambda v: v - 1)(1.0)  # opt-in: JIT191


def main():
    fire.Fire({"serve": serve})


if __name__ == "__main__":
    fire.Fire([stop])
== handed to other starters
import defopt
import jax
import wandb
from prefect import flow


def serve(name):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191


def sweep():
    jax.jit(lambda v: v - 1)(1.0)  # opt-in: JIT191


@flow(name="watch")
def watch(name):
    jax.jit(lambda v: v * 2)(1.0)  # opt-in: JIT191


wandb.agent("sweep", sweep, count=3)
defopt.run(serve)
== a callback of a typer application
import jax
import typer

app = typer.Typer()


@app.callback()
def serve(verbose: bool = False):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== what a parser's subcommand runs
import argparse
import jax


def serve(args):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_subparsers().add_parser("serve").set_defaults(run=serve)
    return parser.parse_args()
== the target of a process
import multiprocessing
import jax


def serve():
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191


multiprocessing.Process(target=serve).start()
== chosen by main from a table
def serve(args):
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191


def stop(args):
    jax.jit(lambda v: v - 1)(1.0)  # opt-in: JIT191


def watch(args):
    jax.jit(lambda v: v * 2)(1.0)  # opt-in: JIT191


COMMANDS = {"serve": serve, "stop": stop}


def main(args):
    assert args.command in COMMANDS, list(COMMANDS)
    run = COMMANDS[args.command]
    run(args)
    {"watch": watch}.get(args.other)(args)
== a test
def test_add():
    jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== a loop in a test
def test_add():
    for x in range(3):
        jax.jit(lambda v: v + 1)(x)  # opt-in: JIT191
== a test method
class TestBox:
    def test_add(self):
        jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== set-up of a test case
import unittest
import jax


class BoxTest(unittest.TestCase):
    def setUp(self):
        self.x = jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== a helper of a test case, in a loop
import unittest
import jax


class BoxTest(unittest.TestCase):
    def check(self):
        return [jax.jit(lambda v: v + 1)(x) for x in range(3)]  # opt-in: JIT191
== a fixture
import jax
import pytest


@pytest.fixture
def warm():
    return jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== a constructor
class Box:
    def __init__(self, x):
        self.x = jax.jit(lambda v: v + 1)(x)  # opt-in: JIT191
== __post_init__
class Box:
    def __post_init__(self):
        self.x = jax.jit(lambda v: v + 1)(1.0)  # opt-in: JIT191
== a method that only the constructor calls
class Box:
    def __init__(self, x):
        self._fill(x)

    def _fill(self, x):
        self.x = jax.jit(lambda v: v + 1)(x)  # opt-in: JIT191
== a name that begins with a set-up word
def init_params(key):
    return jax.jit(lambda k: k + 1)(key)  # opt-in: JIT191
== a name that ends with a set-up word
def state_init(key):
    return jax.jit(lambda k: k + 1)(key)  # opt-in: JIT191
== a loader
def load_weights(path):
    return jax.jit(lambda k: k + 1)(read(path))  # opt-in: JIT191
== a whole training run
def train_model(config, data):
    step = jax.jit(lambda s, b: s + b)  # opt-in: JIT191
    total = jax.jit(lambda v: v.sum())(data)  # opt-in: JIT191
    for epoch in range(config.epochs):
        for batch in data:
            total = step(total, batch)
        print(epoch, total)
    return total
== a benchmark
def benchmark_add(size):
    begin = time.perf_counter()
    jax.jit(lambda v: v + 1)(size)  # opt-in: JIT191
    print(time.perf_counter() - begin)
""")

OFTEN = inline("""\
== nothing speaks for either
def quantity(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== called in a loop of main
def stage(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101


def main():
    for x in range(3):
        stage(x)
== what is jitted initialises parameters, in a loop
import flax.linen as nn
import jax


def quantity(keys, x):
    model = nn.Dense(3)
    return [jax.jit(model.init)(key, x) for key in keys]  # expect: JIT104
== a callback of a page
import dash
import jax

app = dash.Dash()


@app.callback(dash.Output("sum", "children"), dash.Input("x", "value"))
def show(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== called in a comprehension at module level
def stage(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101


READY = [stage(x) for x in range(3)]
== called in main and elsewhere
def stage(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101


def quantity(x):
    return stage(x)


def main():
    stage(1.0)
== chosen by main from a table, in a loop
def serve(x):
    jax.jit(lambda v: v + 1)(x)  # expect: JIT101


COMMANDS = {"serve": serve}


def main(jobs):
    for job in jobs:
        COMMANDS[job.command](job.x)
== in a table that another function reads
def serve(x):
    jax.jit(lambda v: v + 1)(x)  # expect: JIT101


COMMANDS = {"serve": serve}


def quantity(command, x):
    return COMMANDS[command](x)


def main():
    COMMANDS["serve"](1.0)
== in a table that main loops over
def serve(x):
    jax.jit(lambda v: v + 1)(x)  # expect: JIT101


def main():
    for command in {"serve": serve}.values():
        command(1.0)
== called from main, and handed on
def stage(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101


def main(bus):
    stage(1.0)
    bus.subscribe(stage)
== called by itself
def stage(x):
    return stage(jax.jit(lambda v: v + 1)(x))  # expect: JIT101
== a loop in main
def main():
    for x in range(3):
        jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== a set-up word, called in a loop
def load_part(x):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101


def main():
    for x in range(3):
        load_part(x)
== a method named main
class Box:
    def main(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== methods that run per step or sample
class Agent:
    def __call__(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101

    def step(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101

    def update(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101

    def sample(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101

    def loss(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== small helpers over devices
def all_mean(tree):
    return jax.pmap(lambda t: lax.pmean(t, "i"), axis_name="i")(tree)  # expect: JIT101


def gather(x):
    return jax.pmap(lambda v: lax.all_gather(v, "i"), axis_name="i")(x)  # expect: JIT101
== a helper per leaf
def normalise(tree):
    return jax.tree.map(jax.tree_util.Partial(scale), jax.jit(lambda t: t)(tree))  # expect: JIT101
== a route of a web server
@app.get("/add")
def add(x: float):
    return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
== a property
class Box:
    @property
    def total(self):
        return jax.jit(lambda v: v.sum())(self.x)  # expect: JIT101
== a nested function that main calls in a loop
def main():
    def stage(x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101

    for x in range(3):
        stage(x)
== a method called test of an application
class Trainer:
    def test(self, x):
        return jax.jit(lambda v: v + 1)(x)  # expect: JIT101
""")


def about(item: Inline) -> str:
    return item.about


@pytest.mark.parametrize("item", ONCE, ids=about)
def test_runs_once(item: Inline) -> None:
    assert found(item) == item.expected


@pytest.mark.parametrize("item", OFTEN, ids=about)
def test_runs_often(item: Inline) -> None:
    assert item.expected
    assert found(item) == item.expected


def test_a_test_modules_helper_runs_once() -> None:
    item = inline("== helper\ndef helper(x):\n    report(jax.jit(lambda v: v + 1)(x))\n")[0]
    assert found(item, filename="tests/test_box.py") == {}
    assert len(found(item, filename="box.py")) == 1


def weighed(source: str, filename: str = "module.py") -> set[str]:
    """The evidence that holds for the last function of a source."""
    module = Module(ast.parse(source), Options(), filename)
    function = module.source.tree.body[-1]
    if isinstance(function, ast.ClassDef):
        function = function.body[-1]
    assert isinstance(function, ast.FunctionDef)
    frequency: Frequency = module.frequency
    return {evidence.what for evidence in EVIDENCE if evidence.holds(frequency, function)}


LONG = "".join(f"    a{i} = {i}\n" for i in range(30))

HOLDS = {
    "its name begins with a set-up word": ("def load_it():\n    pass\n", "def it_load():\n    pass\n"),
    "its name ends with a set-up word": ("def it_init():\n    pass\n", "def init_it():\n    pass\n"),
    "its name begins with a word of conversion, or with that of a mesh": (
        "def from_config():\n    pass\n",
        "def config_from():\n    pass\n",
    ),
    "its name ends with `mesh`": ("def make_mesh():\n    pass\n", "def mesh_of():\n    pass\n"),
    "its name begins with a word of evaluation, and it is a method": (
        "class A:\n    def evaluate(self):\n        pass\n",
        "def evaluate():\n    pass\n",
    ),
    "its name has a set-up word": ("def it_make_one():\n    pass\n", "def remake():\n    pass\n"),
    "its name begins with a word of preparation": ("def prepare_it():\n    pass\n", "def unprepare():\n    pass\n"),
    "its name moves parameters, a state or a model to its devices": (
        "def shard_params():\n    pass\n",
        "def shard_batch():\n    pass\n",
    ),
    "its name begins with a driver's word": ("def train_it():\n    pass\n", "def constrain():\n    pass\n"),
    "it loops over epochs, steps or batches itself": (
        "def f():\n    for epoch in range(3):\n        g()\n",
        "def f():\n    for leaf in range(3):\n        g()\n",
    ),
    "it runs a whole loop on the device": ("def f():\n    lax.scan(g, 0, x)\n", "def f():\n    lax.cond(x, g, h)\n"),
    "it prints, logs or plots": ("def f():\n    print(1)\n", "def f():\n    sprint(1)\n"),
    "it reads arguments, files or data sets": ("def f(p):\n    open(p)\n", "def f(p):\n    reopen(p)\n"),
    "it is long": (f"def f():\n{LONG}", "def f():\n    pass\n"),
    "it is short and returns a value": ("def f():\n    return 1\n", "def f():\n    return\n"),
    "its name has a word of a hot path": ("def loss_of():\n    pass\n", "def glossary():\n    pass\n"),
    "such a method, or a function that a loop of the file calls, calls it": (
        "class A:\n    def step(self):\n        self.inner()\n\n    def inner(self):\n        pass\n",
        "class A:\n    def report(self):\n        self.inner()\n\n    def inner(self):\n        pass\n",
    ),
    "it is a method that runs per step or sample": (
        "class A:\n    def step(self):\n        pass\n",
        "def step():\n    pass\n",
    ),
}


@pytest.mark.parametrize("what", HOLDS)
def test_evidence(what: str) -> None:
    holds, does_not = HOLDS[what]
    assert what in weighed(holds)
    assert what not in weighed(does_not)


def test_evidence_of_a_test_module() -> None:
    what = "it stands in a test module"
    assert what in weighed("def f():\n    pass\n", "tests/test_it.py")
    assert what not in weighed("def f():\n    pass\n", "latest.py")


def test_every_evidence_is_tested() -> None:
    assert {evidence.what for evidence in EVIDENCE} == {*HOLDS, "it stands in a test module"}
