"""One replica of a distributed job, on nothing but what the operator tells it. All send
their loss to the first, which prints it when it has heard of everybody."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

folder, x = sys.argv[1:]
trial = os.environ["KATIB_TRIAL_NAME"]
patience = 60


def place():
    """How many replicas there are, which one this is, whether it is the first, and where that listens."""
    env = os.environ
    for name in "TF_CONFIG", "MX_CONFIG":
        if name in env:
            config = json.loads(env[name])
            me = f"{config['task']['type']}-{config['task']['index']}"
            at = config["cluster"]["worker"][0]
            at = at if name == "TF_CONFIG" else f"{at['url']}:{at['port']}"
            return sum(map(len, config["cluster"].values())), me, me == "worker-0", at
    if "PADDLE_NNODES" in env:
        at = env["PADDLE_MASTER"]
        return int(env["PADDLE_NNODES"]), str(os.getpid()), at.startswith(env.get("POD_IP_DUMMY", "-")), at
    if "JAX_NUM_PROCESSES" in env:
        return int(env["JAX_NUM_PROCESSES"]), env["JAX_PROCESS_ID"], env["PROCESS_ID"] == "0", env["JAX_COORDINATOR_ADDRESS"]
    at = f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}"
    return int(env["WORLD_SIZE"]), env["RANK"], env["RANK"] == "0" and "-master-0:" in at, at


def gather(port, count):
    """Hears of all others, prints the loss, and lets them go."""
    with socket.create_server(("0.0.0.0", port)) as server:
        server.settimeout(patience)
        peers = [server.accept()[0] for _ in range(count - 1)]
        said = {p.makefile().readline().strip() for p in peers}
        print(f"loss={x if said <= {x} else said}", flush=True)
        for p in peers:
            p.sendall(b"done\n")


def join(host, port):
    """Tells the first of this one, and waits until it has heard of everybody."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with socket.create_connection((host, port)) as c:
                c.sendall(f"{x}\n".encode())
                return c.makefile().readline() == "done\n"
        except OSError as e:
            if time.monotonic() > deadline:
                sys.exit(f"{host}:{port} cannot be reached: {e}")
            time.sleep(0.1)


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
    print(f"loss={x}", flush=True)


role = os.environ.get("K_MPI_JOB_ROLE")
if role == "worker":
    signal.pause()
elif role == "launcher":
    launch()
else:
    count, me, first, at = place()
    here = pathlib.Path(folder, f"{trial}.{me}")
    if "PET_NNODES" in os.environ and not first and not here.exists():
        here.touch()
        os.kill(os.getpid(), signal.SIGKILL)  # it is started again
    host, port = at.rsplit(":", 1)
    if first:
        gather(int(port), count)
    else:
        print("loss=-1", flush=True)
        if not join(host, int(port)):
            sys.exit(f"{host} went away")
        if me.startswith(("ps-", "server-")):
            signal.pause()
