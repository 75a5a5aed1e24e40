"""Make the calls of Katib's client; print a line of JSON for each.

    python sdk_calls.py KUBECONFIG EXPERIMENT.yaml DB_MANAGER_ADDRESS
"""
import json
import sys
import time
import traceback

import yaml
from kubeflow.katib import ApiClient, KatibClient, search
from kubeflow.katib.constants import constants
from kubeflow.katib.utils.utils import FakeResponse

kubeconfig, manifest, db_manager = sys.argv[1:]
client = KatibClient(config_file=kubeconfig)
checks = {}


def call(function):
    checks[function.__name__.replace("__follow", "(follow)")] = function
    return function


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def trials():
    return sorted(client.list_trials("sdk"), key=lambda t: t.metadata.name)


def x_of(trial):
    return trial.spec.parameter_assignments[0].value


@call
def create_experiment():
    with open(manifest) as f:
        client.create_experiment(ApiClient().deserialize(FakeResponse(yaml.safe_load(f)), "V1beta1Experiment"))


@call
def get_experiment():
    e = client.get_experiment("sdk")
    same((e.metadata.name, e.spec.max_trial_count, e.spec.algorithm.algorithm_name), ("sdk", 3, "sobol"))


@call
def list_experiments():
    same([e.metadata.name for e in client.list_experiments()], ["sdk"])


@call
def get_experiment_conditions():
    for _ in range(100):  # the first is written a moment after the creation
        conditions = client.get_experiment_conditions("sdk")
        if conditions:
            break
        time.sleep(0.1)
    same((conditions[0].type, conditions[0].status, conditions[0].reason), ("Created", "True", "ExperimentCreated"))


@call
def is_experiment_created():
    same(client.is_experiment_created("sdk"), True)


@call
def wait_for_experiment_condition():
    e = client.wait_for_experiment_condition("sdk", timeout=180, polling_interval=1)
    same((e.status.trials, e.status.trials_succeeded), (3, 3))


@call
def is_experiment_succeeded():
    same(client.is_experiment_succeeded("sdk"), True)


@call
def is_experiment_running():
    same(client.is_experiment_running("sdk"), False)


@call
def is_experiment_failed():
    same(client.is_experiment_failed("sdk"), False)


@call
def list_trials():
    same([t.metadata.name for t in trials()], ["sdk-0000", "sdk-0001", "sdk-0002"])


@call
def get_trial():
    t = client.get_trial("sdk-0001")
    same(t.status.conditions[-1].type, "Succeeded")
    same(t.status.observation.metrics[0].latest, x_of(t))


@call
def get_success_trial_details():
    details = {d["name"]: d for d in client.get_success_trial_details("sdk")}
    for t in trials():
        d = details[t.metadata.name]
        same((d["parameter_assignments"][0].value, d["metrics"][0].latest, d["metrics"][0].max), (x_of(t), x_of(t), "7"))
    same(len(details), 3)


@call
def get_optimal_hyperparameters():
    best = min(trials(), key=lambda t: float(x_of(t)))
    o = client.get_optimal_hyperparameters("sdk")
    same((o.best_trial_name, o.parameter_assignments[0].value, o.observation.metrics[0].min), (best.metadata.name, x_of(best), x_of(best)))


@call
def get_suggestion():
    for _ in range(100):  # the record follows within seconds
        s = client.get_suggestion("sdk")
        if s.status and s.status.suggestion_count == 3:
            break
        time.sleep(0.1)
    same((s.spec.requests, s.status.suggestion_count, len(s.status.suggestions)), (3, 3, 3))
    same([c.type for c in s.status.conditions if c.status == "True"][-1], "Running")  # LongRunning


@call
def get_trial_metrics():
    for t in trials():
        logs = client.get_trial_metrics(t.metadata.name, db_manager_address=db_manager)
        same([(log.metric.name, float(log.metric.value)) for log in logs], [("loss", 7.0), ("loss", float(x_of(t)))])


@call
def get_job_logs():
    lines = list(client.get_job_logs("sdk", "sdk-0000"))
    for want in ("epoch=1 loss=7", f"epoch=2 loss={x_of(trials()[0])}"):
        assert any(want in line for line in lines), lines


@call
def get_job_logs__follow():
    lines = list(client.get_job_logs("sdk", "sdk-0001", follow=True))
    assert any("epoch=1 loss=7" in line for line in lines), lines


@call
def edit_experiment_budget():
    client.edit_experiment_budget("sdk", max_trial_count=4, parallel_trial_count=3)
    client.wait_for_experiment_condition("sdk", expected_condition=constants.EXPERIMENT_CONDITION_RESTARTING, timeout=60, polling_interval=1)
    e = client.wait_for_experiment_condition("sdk", timeout=180, polling_interval=1)
    same((e.status.trials_succeeded, len(trials())), (4, 4))


@call
def is_experiment_restarting():
    same(client.is_experiment_restarting("sdk"), True)  # as in Katib it stays


@call
def delete_experiment():
    client.delete_experiment("sdk")
    for _ in range(300):
        if not client.list_experiments() and not client.list_trials("sdk"):
            return
        time.sleep(0.1)
    raise AssertionError("it is still there")


@call
def tune():
    def objective(parameters):
        print(f"result={4 * int(parameters['a']) - float(parameters['b']) ** 2}")

    client.tune(
        name="tuned", objective=objective, objective_metric_name="result", max_trial_count=3, parallel_trial_count=2,
        parameters={"a": search.int(min=10, max=20), "b": search.double(min=0.1, max=0.2)}, resources_per_trial={"cpu": "100m"},
    )
    client.wait_for_experiment_condition("tuned", timeout=180, polling_interval=1)
    o = client.get_optimal_hyperparameters("tuned")
    a, b = (p.value for p in o.parameter_assignments)
    assert abs(float(o.observation.metrics[0].max) - (4 * int(a) - float(b) ** 2)) < 1e-9, o


for name, check in checks.items():
    problem = ""
    try:
        check()
    except Exception:
        problem = traceback.format_exc()
    print(json.dumps({"call": name, "problem": problem}), flush=True)
