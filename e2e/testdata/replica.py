"""One replica of a distributed job, on nothing but what the operator tells it: it waits
until all replicas are there, and prints its loss. Only that of the first counts."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

folder, x = sys.argv[1:]
trial = os.environ["KATIB_TRIAL_NAME"]


def place():
    """How many replicas there are, which one this is, and whether it is the first."""
    env = os.environ
    for name in "TF_CONFIG", "MX_CONFIG":
        if name in env:
            config = json.loads(env[name])
            me = f"{config['task']['type']}-{config['task']['index']}"
            return sum(map(len, config["cluster"].values())), me, me == "worker-0"
    if "PADDLE_NNODES" in env:
        return int(env["PADDLE_NNODES"]), str(os.getpid()), env["PADDLE_MASTER"].startswith(env.get("POD_IP_DUMMY", "-"))
    if "JAX_NUM_PROCESSES" in env:
        return int(env["JAX_NUM_PROCESSES"]), env["JAX_PROCESS_ID"], env["PROCESS_ID"] == "0"
    return int(env["WORLD_SIZE"]), env["RANK"], env["RANK"] == "0" and env["MASTER_ADDR"].endswith("-master-0")


def launch():
    """Starts a program in each worker, as mpirun does."""
    hosts = pathlib.Path(os.environ["OMPI_MCA_orte_default_hostfile"]).read_text().splitlines()
    for host in hosts:
        command = [os.environ["OMPI_MCA_plm_rsh_agent"], host.split()[0], "echo", "$KATIB_TRIAL_NAME", "$K_MPI_JOB_ROLE"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if said != f"{trial} worker\n":
            sys.exit(f"{host} says {said}")
    if len(hosts) != 2:
        sys.exit(f"the hostfile has {hosts}")


role = os.environ.get("K_MPI_JOB_ROLE")
if role == "worker":
    signal.pause()
elif role == "launcher":
    launch()
    first = True
else:
    count, me, first = place()
    here = pathlib.Path(folder, f"{trial}.{me}")
    if "PET_NNODES" in os.environ and not first and not here.exists():
        here.touch()
        os.kill(os.getpid(), signal.SIGKILL)  # it is started again
    here.touch()
    deadline = time.monotonic() + 60
    while len(there := list(pathlib.Path(folder).glob(f"{trial}.*"))) < count:
        if time.monotonic() > deadline:
            sys.exit(f"{me} waited in vain for {count} replicas; there are {there}")
        time.sleep(0.05)
    if me.startswith(("ps-", "server-")):
        signal.pause()
print(f"loss={x if first else -1}", flush=True)
