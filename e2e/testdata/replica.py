"""One replica of a distributed job, on nothing but what the operator tells it: it waits
until all replicas are there, and prints its loss. Only that of the first counts."""

import json
import os
import pathlib
import signal
import sys
import time

folder, x = sys.argv[1:]
if "TF_CONFIG" in os.environ:
    config = json.loads(os.environ["TF_CONFIG"])
    everybody = [f"{kind}-{i}" for kind, hosts in config["cluster"].items() for i in range(len(hosts))]
    me = f"{config['task']['type']}-{config['task']['index']}"
    first = "worker-0"
else:
    everybody = [str(i) for i in range(int(os.environ["WORLD_SIZE"]))]
    me, first = os.environ["RANK"], "0"
    x = x if os.environ["MASTER_ADDR"].endswith("-master-0") else "-2"

trial = os.environ["KATIB_TRIAL_NAME"]
pathlib.Path(folder, f"{trial}.{me}").touch()
deadline = time.monotonic() + 60
while missing := [r for r in everybody if not pathlib.Path(folder, f"{trial}.{r}").exists()]:
    if time.monotonic() > deadline:
        sys.exit(f"{me} waited in vain for {missing}")
    time.sleep(0.05)
if me.startswith("ps-"):
    signal.pause()
print(f"loss={x if me == first else -1}", flush=True)
