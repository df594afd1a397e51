"""Random programs: the guard says what a count of the executions of their bodies says."""

import pytest
from programs import random_program, source, unmarked
from run import judge, judge_all, prepare

SEEDS = range(150)
WITH_PYTEST = range(3000, 3020)


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare()


@pytest.mark.parametrize("part", range(10))
def test_programs_in_this_process(part):
    wrong = {seed: problems for seed in SEEDS[part::10] if (problems := judge(random_program(seed), seed))}
    assert not wrong, "\n".join(f"{wrong[seed]}\n{source(unmarked(random_program(seed)))}" for seed in wrong)


def test_programs_as_tests_of_pytest():
    assert judge_all(WITH_PYTEST) == {}
