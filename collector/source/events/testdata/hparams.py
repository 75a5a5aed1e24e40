"""Asks a real TensorBoard over a directory what its HPARAMS tab shows.

    hparams.py DIR SESSIONS     print the session groups as JSON, once there are
                                that many sessions
"""

import json
import sys
import time
import urllib.request

from tensorboard import program

root, sessions = sys.argv[1], int(sys.argv[2])
board = program.TensorBoard()
board.configure(argv=[None, "--logdir", root, "--host", "127.0.0.1", "--port", "0", "--reload_interval", "1"])
url = board.launch().rstrip("/") + "/data/plugin/hparams/"


def post(what, body):
    request = urllib.request.Request(url + what, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=20))


deadline = time.monotonic() + 60
while True:
    experiment = post("experiment", {"experimentName": "", "includeMetrics": True})
    metrics = [{"metric": m["name"]} for m in experiment.get("metricInfos", [])]
    columns = [{"hparam": h["name"]} for h in experiment.get("hparamInfos", [])] + metrics
    every = ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"]
    groups = post("session_groups", {"colParams": columns, "allowedStatuses": every, "startIndex": 0, "sliceSize": 100})
    found = groups.get("sessionGroups", [])
    whole = all(len(g.get("metricValues", [])) == len(metrics) and metrics for g in found)
    if len(found) == sessions and whole or time.monotonic() > deadline:
        break
    time.sleep(0.5)
print(json.dumps({"experiment": experiment, "groups": found}))
