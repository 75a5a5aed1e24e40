import math

import pytest

from vernier_hpo import Study, choice


@pytest.mark.parametrize("values", [(1, 2, math.inf), (None, math.inf, -math.inf, math.nan)])
def test_a_number_that_is_not_finite_is_a_choice(values):
    with Study({"norm": choice(*values)}, minimize="x", trials=len(values), algorithm="grid") as study:
        got = [trial.params["norm"] for trial in study]
    assert sorted(map(repr, got)) == sorted(map(repr, values))


@pytest.mark.parametrize("values", [["adam", "sgd"], {"adam", "sgd"}, range(3)])
def test_a_list_of_values_is_not_taken_for_one_value(values):  # as Optuna and Ray take theirs
    with pytest.raises(ValueError, match="choice\\(\\*values\\)"):
        choice(values)
    assert len(choice(*values).values) == len(values)
    assert choice((64, 64)).values == ((64, 64),)


def test_the_order_of_whole_numbers_of_numpy_counts():
    numpy = pytest.importorskip("numpy", reason="NOT RUN: numpy is not installed")
    sizes = choice(*numpy.array([64, 16, 32]))
    assert sizes.kind == "discrete"
    with Study({"size": sizes}, minimize="x", trials=3, algorithm="grid") as study:
        assert {trial.params["size"] for trial in study} == {16, 32, 64}
