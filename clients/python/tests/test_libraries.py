import os

import pytest

from vernier_hpo import choice, loguniform


def test_optuna_samples_by_our_algorithms(tmp_path):
    optuna = pytest.importorskip("optuna", reason="NOT RUN: optuna is not installed")
    from vernier_hpo.optuna import VernierSampler

    def objective(trial):
        x = trial.suggest_float("x", -5, 5)
        n = trial.suggest_int("n", 1, 9)
        kind = trial.suggest_categorical("kind", ["a", None, True])
        if trial.number == 7:
            raise optuna.TrialPruned
        return x * x + abs(n - 3) + (kind is not True)

    storage = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(sampler=VernierSampler(seed=1), storage=storage, study_name="s")
    study.optimize(objective, n_trials=25)
    drawn = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    drawn.optimize(objective, n_trials=25)
    assert study.best_value < min(0.5, drawn.best_value)
    again = optuna.load_study(study_name="s", storage=storage, sampler=VernierSampler(seed=1))
    again.optimize(objective, n_trials=15, n_jobs=2)
    assert len(again.trials) == 40 and min(t.value for t in again.trials[25:]) < 0.1


def test_optuna_with_two_objectives():
    optuna = pytest.importorskip("optuna", reason="NOT RUN: optuna is not installed")
    from vernier_hpo.optuna import VernierSampler

    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=VernierSampler(search_space=space))
    study.optimize(lambda t: (t.suggest_float("x", 0, 1), t.params["x"] ** 2), n_trials=12)
    assert len(study.best_trials) > 3


def test_optuna_tells_the_points_that_trials_had(monkeypatch):
    optuna = pytest.importorskip("optuna", reason="NOT RUN: optuna is not installed")
    from vernier_hpo.engine import Engine
    from vernier_hpo.optuna import VernierSampler

    told, call = {}, Engine.call

    def spy(self, **request):
        answer = call(self, **request)
        for n, t in zip(answer.get("numbers", []), request.get("tell", [])):
            told[n] = t
        told.update({t["number"]: t for t in request.get("tell", []) if "number" in t})
        return answer

    monkeypatch.setattr(Engine, "call", spy)
    space = {n: optuna.distributions.FloatDistribution(0, 1) for n in ("x", "y")}
    study = optuna.create_study(sampler=VernierSampler("random", search_space=space))
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 7})  # Optuna warns of it, and runs it
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("y", 0, 1), n_trials=4)
    assert study.trials[0].params["x"] == 0.25
    assert [(t["state"], t.get("params")) for _, t in sorted(told.items())] == [
        ("succeeded", study.trials[0].params), ("unmeasured", None), ("succeeded", study.trials[2].params)]


def test_ray_searches_by_our_algorithms(tmp_path):
    pytest.importorskip("ray.tune", reason="NOT RUN: ray[tune] is not installed")
    from vernier_hpo.ray import VernierSearch

    space = {"lr": loguniform(1e-4, 1), "opt": choice("a", "b")}

    def play(search, n):
        points = []
        for _ in range(n):
            config = search.suggest(f"t{len(search._asked)}")
            points.append(config)
            search.on_trial_complete(f"t{len(search._asked) - 1}", {"loss": config["lr"] + (config["opt"] == "b")})
        return points

    search = VernierSearch(space)
    assert search.set_search_properties("loss", "min", {})
    points = play(search, 12)
    search.save(str(tmp_path / "search.pkl"))
    restored = VernierSearch(space)
    restored.restore(str(tmp_path / "search.pkl"))
    assert play(restored, 5) == play(search, 5)
    assert min(p["lr"] + (p["opt"] == "b") for p in points) < 0.01


@pytest.mark.skipif("VERNIER_TEST_RAY" not in os.environ, reason="NOT RUN: starts a Ray cluster; set VERNIER_TEST_RAY")
def test_ray_tunes(tmp_path):
    ray = pytest.importorskip("ray")
    from ray import tune

    from vernier_hpo.ray import VernierSearch

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        tuner = tune.Tuner(
            lambda config: {"loss": config["lr"]},
            tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=10, max_concurrent_trials=2,
                                        search_alg=VernierSearch({"lr": loguniform(1e-4, 1)})),
            run_config=tune.RunConfig(storage_path=str(tmp_path)))
        assert tuner.fit().get_best_result().metrics["loss"] < 0.01
    finally:
        ray.shutdown()
