import math

import pytest

from vernier_hpo import Study, uniform


@pytest.mark.parametrize("reports, want", [
    ([dict(a=1, b=9), dict(a=5, b=2), dict(a=6, b=6)], (1, 9)),
    ([dict(a=3), dict(b=30), dict(a=1), dict(b=10), dict(a=2), dict(b=20)], (1, 10)),
    ([dict(step=0, a=3, b=30), dict(step=0, a=1, b=10)], (3, 30)),
    ([dict(step=1, a=3, b=10), dict(step=5, a=1, b=50), dict(step=3, a=0.5)], (0.5, 10)),
    ([dict(step=4, b=40), dict(step=2, b=20), dict(step=1, a=1)], (1, 20)),
    ([dict(a=math.nan, b=1), dict(a=2, b=2), dict(a=-math.inf, b=3)], (2, 2)),
], ids=["together", "in turns", "a step twice", "out of order", "before", "not finite"])
def test_the_values_of_several_objectives_are_of_one_step(reports, want):
    with Study({"x": uniform(0, 1)}, minimize=["a", "b"], trials=1) as study:
        with study.ask() as trial:
            for r in reports:
                trial.report(**r)
        assert study.best.values == {"a": want[0], "b": want[1]}


@pytest.mark.parametrize("direction, sign", [("minimize", -1), ("maximize", 1)])
def test_what_is_infinite_is_never_best(direction, sign):
    with Study({"x": uniform(0, 1)}, trials=3, **{direction: "score"}) as study:
        for trial, values in zip(study, ([sign * math.inf], [5, sign * math.inf], [sign * 7])):
            with trial:
                for step, value in enumerate(values):
                    trial.report(step=step, score=value)
        assert [r.value for r in study.trials] == [sign * math.inf, 5, sign * 7]
        assert study.best.number == 2 and [r.number for r in study.front] == [2]
