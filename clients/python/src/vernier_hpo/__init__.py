"""Hyperparameter tuning with Vernier.

Study searches on this machine, in a process of its own. Client speaks to Vernier's
service, whose experiments kubectl and the dashboard show too. Both hand out Trials.
tune runs a function for you; report and params are for a program that is itself a
trial of an Experiment.
"""

from ._version import __version__
from .inside import params, report
from .local import Study
from .remote import Client, RemoteStudy
from .space import Parameter, choice, integer, loguniform, normal, uniform
from .trial import Result, Trial, TrialLost, TrialStopped, VernierError
from .tuning import tune

__all__ = [
    "Client", "Parameter", "RemoteStudy", "Result", "Study", "Trial", "TrialLost", "TrialStopped",
    "VernierError", "__version__", "choice", "integer", "loguniform", "normal", "params", "report",
    "tune", "uniform",
]
