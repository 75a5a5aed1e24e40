import pytest

from vernier_hpo import Study, VernierError, choice, integer, loguniform, uniform
from vernier_hpo.space import for_experiment

SPACE = {
    "lr": loguniform(1e-5, 0.1, prior=1e-3, spread=0.2),
    "layers": integer(1, 8, prior=7),
    "dropout": uniform(0, 0.5, step=0.1, prior=0.1),
    "optimizer": choice("sgd", "adam", "lion", prior="adam"),
    "batch": choice(64, 16, 32, weights=[1, 3, 0.5]),
    "bias": choice(True, False, prior=False),
}


@pytest.mark.parametrize("algorithm", ["auto", "random", "tpe"])
def test_the_search_begins_where_the_user_believes(algorithm):
    with Study(SPACE, minimize="loss", trials=1, algorithm=algorithm) as study:
        (params,) = [trial.params for trial in study]
    assert params == {"lr": pytest.approx(1e-3), "layers": 7, "dropout": 0.1, "optimizer": "adam", "batch": 16,
                      "bias": False}


def test_the_service_gets_priors_as_an_experiment_has_them():
    assert {p["name"]: p["feasibleSpace"]["prior"] for p in for_experiment(SPACE)} == {
        "lr": {"value": "0.001", "spread": "0.2"}, "layers": {"value": "7"}, "dropout": {"value": "0.1"},
        "optimizer": {"value": "adam"}, "batch": {"weights": ["3", "0.5", "1"]}, "bias": {"value": "False"}}  # of 16, 32, 64


@pytest.mark.parametrize("parameter, words", [
    (loguniform(1e-5, 0.1, prior=1), "lr.*prior"), (uniform(0, 1, prior=0.5, spread=2), "at most 1"),
    (choice("a", "b", prior="c"), "lr.*prior"), (choice("a", "b", prior="a", weights=[1, 1]), "lr.*prior")])
def test_a_prior_that_is_none_is_explained(parameter, words):
    with pytest.raises(VernierError, match=words):
        Study({"lr": parameter}, minimize="loss")


def test_each_value_has_a_weight():
    with pytest.raises(ValueError, match="2 values and 3 weights"):
        choice("a", "b", weights=[1, 2, 3])
    with pytest.raises(ValueError, match="in the order"):
        choice(16, 32, weights={16: 1, 32: 3})


def test_a_file_goes_on_with_another_prior(tmp_path):
    file = str(tmp_path / "study.jsonl")
    for prior in (None, 0.2, 0.7):
        with Study({"x": uniform(0, 1, prior=prior)}, minimize="loss", file=file) as study:
            with study.ask() as trial:
                trial.succeed(1)
    assert [r.number for r in study.trials] == [0, 1, 2]
