import concurrent.futures
import math
import time

import pytest

from vernier_hpo import Client, TrialLost, TrialStopped, VernierError, choice, integer, loguniform, tune, uniform

SPACE = {"lr": uniform(0, 1), "opt": choice("a", "b")}


def test_workers_share_an_experiment(client, name):
    def work(_):
        study = client.study(name, SPACE, minimize="loss", trials=12, parallel=3, algorithm="random")
        done = []
        for trial in study:
            with trial:
                trial.report(step=0, loss=2)
                trial.report(step=1, loss=trial.params["lr"])
                done.append(trial.number)
        return done

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        numbers = [n for done in pool.map(work, range(3)) for n in done]
    assert sorted(numbers) == list(range(12))
    study = client.study(name)
    assert study.best.value == min(r.params["lr"] for r in study.trials)
    assert study.ask() is None


def test_heartbeats_keep_a_trial(client, name):
    client = Client(lease=3)
    study = client.study(name, SPACE, minimize="loss", trials=1, parallel=1)
    with study.ask() as trial:
        time.sleep(1.5 * client.lease)  # longer than the lease: it is what is tested
        trial.report(loss=1)
    assert [(r.state, r.value) for r in study.trials] == [("succeeded", 1)]


def test_a_trial_of_another_worker_is_lost(client, name):
    study = client.study(name, SPACE, minimize="loss", trials=1, parallel=1)
    first = study.ask()
    client.call("ReleaseTrial", name=first.name, attempt=first.attempt)
    second = study.ask()
    assert (second.name, second.attempt) == (first.name, first.attempt + 1)
    with pytest.raises(TrialLost):
        first.report(loss=1)
    with pytest.raises(TrialLost):
        first.succeed(1)
    second.succeed(2)
    assert study.best.value == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.25])
def test_values_that_json_lacks_arrive(client, name, value):
    study = client.study(name, SPACE, minimize="loss", trials=1, parallel=1)
    trial = study.ask()
    trial.report(step=0, loss=value)
    trial.succeed(loss=value)
    (got,) = study.trials
    assert got.state == "succeeded" and repr(got.value) == repr(value)
    assert (study.best is None) == (not math.isfinite(value))


def test_a_stopping_rule_stops(client, name):
    study = client.study(name, SPACE, minimize="loss", trials=2, parallel=1,
                         earlyStopping={"algorithmName": "threshold", "algorithmSettings": [{"name": "upper", "value": "5"}]})
    with study.ask() as trial:
        for step in range(200):
            trial.report(step=step, loss=9)
            time.sleep(0.1)  # the rule runs in the controller
        raise AssertionError("it was not stopped")
    assert study.trials[0].state == "pruned"


def test_a_function_runs_in_pods(client, name):
    def train(lr, opt, deep=None):
        return {"loss": (lr - 0.3) ** 2 + (opt == "b"), "deep": 1 if deep is True else 0}

    space = {**SPACE, "deep": choice(True, False, when={"opt": ["a"]})}
    tuned = tune(train, space, minimize="loss", trials=4, workers=2, mode="pods", client=client, name=name,
                 image="python", algorithm="random")
    assert len(tuned.trials) == 4
    for r in tuned.trials:
        assert math.isclose(r.values["loss"], train(**r.params)["loss"])


def test_a_search_at_the_service_begins_at_the_prior(client, name):
    study = client.study(name, {"lr": loguniform(1e-5, 0.1, prior=1e-3)}, minimize="loss", trials=1)
    for trial in study:
        trial.succeed(1)
    assert math.isclose(study.trials[0].params["lr"], 1e-3)


@pytest.mark.parametrize("space, words", [({"lr": uniform(1, 0)}, "max"), ({"n": integer(3, 1)}, "max")])
def test_an_invalid_space_is_explained(client, name, space, words):
    with pytest.raises(VernierError, match=words) as e:
        client.study(name, space, minimize="loss")
    assert e.value.reason == "INVALID"


def test_the_token_is_checked(client):
    with pytest.raises(VernierError) as e:
        Client(client.server, "wrong").study("any")
    assert e.value.reason == "UNAUTHENTICATED"


def test_a_timeout_ends_the_wait_for_trials_of_other_programs(client, name):
    study = client.study(name, SPACE, minimize="loss", trials=4, parallel=1)
    held = study.ask()
    tuned = tune(lambda **params: 1, {}, study=study, timeout=1)
    assert [r.state for r in tuned.trials if r.number == held.number] == ["running"]
    held.succeed(1)
