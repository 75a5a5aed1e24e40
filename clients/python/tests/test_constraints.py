import concurrent.futures
import math
import subprocess

import pytest

from vernier_hpo import Client, Study, VernierError, tune, uniform
from vernier_hpo._binary import find
from vernier_hpo.bounds import Bound, split

SPACE = {"x": uniform(0, 1), "y": uniform(0, 1)}


@pytest.mark.parametrize("text, want", [
    ("size <= 100", Bound("size", max=100)),
    ("100 >= size", Bound("size", max=100)),
    ("size > 1e-3", Bound("size", min=0.001)),
    ("0.5 <= recall <= 1", Bound("recall", 0.5, 1)),
    ("`val/acc` >= .5", Bound("val/acc", min=0.5)),
])
def test_a_comparison_of_a_metric_with_numbers_is_a_bound(text, want):
    assert split([text], SPACE) == ([], [want])


@pytest.mark.parametrize("text", ["x <= 0.5", "x * y <= 0.5", "log10(x) >= -4 and not y > 0.3", "x != 'size'"])
def test_what_names_parameters_alone_is_no_bound(text):
    assert split([text], SPACE) == ([text], [])


@pytest.mark.parametrize("text, word", [
    ("x * size <= 3", "size"), ("size == 3", "size"), ("size <= y", "size"), ("2 < 3 <= size", "size"), ("size", "size"),
])
def test_what_cannot_be_a_bound_is_named(text, word):
    with pytest.raises(ValueError, match=f"{word} is no parameter"):
        split([text], SPACE)


def test_bounds_of_one_metric_are_one():
    assert split(["size <= 9", "size >= 1", "size <= 5"], SPACE) == ([], [Bound("size", 1, 5)])
    with pytest.raises(ValueError, match="size"):
        split(["size <= 1", "size >= 2"], SPACE)


def test_a_metric_that_is_nan_or_missing_breaks_its_bound():
    assert not Bound("size", max=1).holds({"size": math.nan})
    assert not Bound("size", max=1).holds({})


def loss(x, y):
    # Without the bound the best x is 0.9.
    return {"size": 100 * x, "loss": (x - 0.9) ** 2 + y, "seconds": 1.0}



def test_the_best_trial_keeps_to_a_bound():
    holds_bounds(tune(loss, SPACE, minimize="loss", trials=25, constraints=["size <= 50"], seed=1))


def test_the_best_trial_of_a_served_study_keeps_to_a_bound(client, name):
    holds_bounds(tune(loss, SPACE, minimize="loss", trials=25, constraints=["size <= 50"], seed=1, client=client, name=name))
    assert client.study(name).best.values["size"] <= 50


def holds_bounds(tuned):
    assert tuned.best.values["size"] <= 50
    assert tuned.best.value == tuned.best.values["loss"] < 0.3  # a search that the bound does not end: random has 0.4
    assert "loss=" in repr(tuned) and "25 trials" in repr(tuned)


def test_a_bounded_metric_that_is_not_measured_is_an_error():
    with pytest.raises(VernierError, match="no size"):
        tune(lambda x, y: x, SPACE, minimize="loss", constraints=["size <= 50"])


def test_a_bounded_metric_that_a_served_study_does_not_measure_is_an_error(client, name):
    with pytest.raises(VernierError, match="no size"):
        tune(lambda x, y: x, SPACE, minimize="loss", constraints=["size <= 50"], client=client, name=name)


def test_a_bounded_metric_is_of_the_step_that_is_best():
    with Study(SPACE, minimize="loss", constraints=["size <= 50"]) as study:
        with study.ask() as trial:
            for step, (value, size) in enumerate([(3, 30), (1, 10), (2, 90)]):
                trial.report(step=step, loss=value, size=size)
        assert study.best.values == {"loss": 1, "size": 10}


def reports(trial, *points):
    for step, values in points:
        trial.report(step=step, **values)


@pytest.mark.parametrize("points", [
    [(0, {"loss": 1}), (0, {"size": 10}), (1, {"loss": 2}), (1, {"size": 90})],
    [(0, {"loss": 1, "size": 10}), (1, {"loss": math.nan, "size": 500})],
    [(0, {"loss": 1, "size": 10}), (0, {"loss": 2, "size": 500})],
    [(0, {"size": 10}), (1, {"loss": 1}), (2, {"size": 90, "loss": 3})],
])
def test_later_values_of_a_bounded_metric_do_not_count(points):
    with Study(SPACE, minimize="loss", constraints=["size <= 50"]) as study:
        with study.ask() as trial:
            reports(trial, *points)
        assert study.best.values == {"loss": 1, "size": 10}


def test_a_study_of_a_file_goes_on_with_another_bound(tmp_path):
    file = str(tmp_path / "study.jsonl")
    for bound, best in (("size <= 50", 0), ("size <= 5", None)):
        with Study(SPACE, minimize="loss", constraints=[bound], file=file, trials=1) as study:
            for trial in study:
                trial.succeed(loss=1, size=10)
            assert (study.best and study.best.number) == best


def test_workers_of_a_served_study_ask_for_more_trials_at_once(client, name):
    def search(trials):
        return tune(loss, SPACE, minimize="loss", trials=trials, client=client, name=name, algorithm="random")

    search(3)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for tuned in pool.map(search, [8] * 4):
            assert len(tuned.trials) == 8


def test_what_is_returned_counts_beside_what_was_reported(client, name):
    def reporting(x, y, trial):
        trial.report(step=0, loss=3, seconds=5)
        return {"loss": x, "seconds": 7.5}

    tune(reporting, SPACE, minimize="loss", trials=1, client=client, name=name)
    curve = subprocess.run([find(), "curve", f"{name}/0", "seconds", "--points", "0", "-o", "csv"], stdout=subprocess.PIPE,
                           check=True, text=True).stdout
    assert "7.5" in curve


def test_a_served_study_goes_on_with_more_trials(client, name):
    for trials in (3, 5, 4):
        tuned = tune(loss, SPACE, minimize="loss", trials=trials, client=client, name=name, algorithm="random")
        assert len(tuned.trials) == (3 if trials == 3 else 5)
    with pytest.raises(VernierError, match="another spec"):
        tune(loss, {**SPACE, "z": uniform(0, 1)}, minimize="loss", trials=5, client=client, name=name, algorithm="random")
