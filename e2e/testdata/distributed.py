"""One rank of a training of two, with the framework and the learning rate that the
arguments name. Each rank has rows of its own; the loss and the number of ranks that it
prints are sums over all ranks, made by the framework."""

import os
import socket
import sys

import numpy as np

framework, rate = sys.argv[1], float(sys.argv[2])
STEPS = 20


def rows(rank):
    rng = np.random.default_rng(rank)
    x = rng.normal(size=(64, 4)).astype(np.float32)
    return x, (x @ np.arange(1, 5) + rng.normal(scale=0.1, size=64)).astype(np.float32)


def train(rank, add):
    """Gradient descent on all rows. add sums an array over the ranks."""
    x, y = rows(rank)
    w, ranks = np.zeros(4, np.float32), add(np.ones(1, np.float32))[0]
    for step in range(STEPS):
        error = x @ w - y
        loss = add(np.array([np.mean(error**2)], np.float32))[0] / ranks
        print(f"step={step} loss={loss:.6f} ranks={ranks:g}", flush=True)
        w -= rate * add(x.T @ error / len(y)) / ranks


def mpi():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    train(world.rank, lambda v: world.allreduce(v))


def jax():
    import jax
    from jax.experimental.multihost_utils import process_allgather

    # JAX takes only the address from the environment.
    jax.distributed.initialize(num_processes=int(os.environ["NUM_PROCESSES"]), process_id=int(os.environ["PROCESS_ID"]))
    train(jax.process_index(), lambda v: np.asarray(process_allgather(v)).sum(axis=0))
    jax.distributed.shutdown()


def xgboost():
    import xgboost as xgb
    from xgboost import collective
    from xgboost.tracker import RabitTracker

    name = socket.gethostname()
    if "MASTER_ADDR" in os.environ:
        first, port, rank = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), int(os.environ["RANK"])
    else:  # a Job with indexes
        job, _, index = name.rpartition("-")
        first, port, rank = f"{job}-0.{os.environ['SUBDOMAIN']}", 9999, int(index)
    if rank == 0:
        tracker = RabitTracker(n_workers=2, host_ip=socket.gethostbyname(first), port=port)
        tracker.start()
    with collective.CommunicatorContext(
        dmlc_communicator="rabit", dmlc_tracker_uri=first, dmlc_tracker_port=port, dmlc_task_id=str(rank), dmlc_retry=20
    ):
        ranks = collective.allreduce(np.ones(1), collective.Op.SUM)[0]
        data, seen = xgb.DMatrix(*rows(rank)), {}
        xgb.train({"eta": rate, "max_depth": 3, "nthread": 1}, data, STEPS, [(data, "all")], evals_result=seen, verbose_eval=False)
        for step, loss in enumerate(seen["all"]["rmse"]):
            print(f"step={step} loss={loss:.6f} ranks={ranks:g}", flush=True)
    if rank == 0:
        tracker.wait_for()


globals()[framework]()
