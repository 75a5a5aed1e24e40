"""An algorithm for Katib: Optuna's TPE behind the messages of Katib's own SDK."""

import sys
from concurrent import futures

import grpc
import optuna
from kubeflow.katib import katib_api_pb2 as api
from kubeflow.katib import katib_api_pb2_grpc as services


class Service(services.SuggestionServicer):
    def __init__(self):
        self.study, self.asked, self.told = None, {}, set()

    def ValidateAlgorithmSettings(self, request, context):
        for setting in request.experiment.spec.algorithm.algorithm_settings:
            if setting.name not in ("random_state", "asked"):
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unknown setting {setting.name}")
        return api.ValidateAlgorithmSettingsReply()

    def GetSuggestions(self, request, context):
        spec = request.experiment.spec
        if self.study is None:
            seed = next((int(s.value) for s in spec.algorithm.algorithm_settings if s.name == "random_state"), None)
            direction = "maximize" if spec.objective.type == api.MAXIMIZE else "minimize"
            self.study = optuna.create_study(direction=direction, sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=2))
        for trial in request.trials:
            if trial.status.condition == api.TrialStatus.SUCCEEDED and trial.name not in self.told:
                values = {m.name: m.value for m in trial.status.observation.metrics}
                point = tuple((a.name, a.value) for a in trial.spec.parameter_assignments.assignments)
                self.study.tell(self.asked[point], float(values[spec.objective.objective_metric_name]))
                self.told.add(trial.name)
        reply = api.GetSuggestionsReply()
        for _ in range(request.current_request_number):
            trial = self.study.ask()
            assignments = []
            for p in spec.parameter_specs.parameters:
                value = trial.suggest_float(p.name, float(p.feasible_space.min), float(p.feasible_space.max))
                assignments.append(api.ParameterAssignment(name=p.name, value=str(value)))
            self.asked[tuple((a.name, a.value) for a in assignments)] = trial
            reply.parameter_assignments.add(assignments=assignments, labels={"optuna.example.com/trial": str(trial.number)})
        reply.algorithm.algorithm_settings.add(name="asked", value=str(len(self.asked)))
        print(f"asked for {request.current_request_number} of {request.total_request_number}, told {len(self.told)}", file=sys.stderr, flush=True)
        return reply


server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
services.add_SuggestionServicer_to_server(Service(), server)
server.add_insecure_port("127.0.0.1:6789")
server.start()
server.wait_for_termination()
