import math

import pytest

from vernier_hpo import Study, uniform


def test_the_values_of_several_objectives_are_of_one_step():
    with Study({"x": uniform(0, 1)}, minimize=["loss", "latency"], trials=1) as study:
        with study.ask() as trial:
            for step, (loss, latency) in enumerate([(1, 9), (5, 2), (6, 6)]):
                trial.report(step=step, loss=loss, latency=latency)
        assert study.best.values == {"loss": 1, "latency": 9}


@pytest.mark.parametrize("direction, sign", [("minimize", -1), ("maximize", 1)])
def test_what_is_infinite_is_never_best(direction, sign):
    with Study({"x": uniform(0, 1)}, trials=3, **{direction: "score"}) as study:
        for trial, values in zip(study, ([sign * math.inf], [5, sign * math.inf], [sign * 7])):
            with trial:
                for step, value in enumerate(values):
                    trial.report(step=step, score=value)
        assert [r.value for r in study.trials] == [sign * math.inf, 5, sign * 7]
        assert study.best.number == 2 and [r.number for r in study.front] == [2]
