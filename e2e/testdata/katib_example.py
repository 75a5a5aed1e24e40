"""Stands in for the programs of the images of Katib's examples.

It takes their flags, and reports what they report, where they do: on standard output, in
the file of --log-path as text or JSON, or in TensorBoard's event files. The values come
from the flags, so that trials differ. It learns nothing, but as simple-pbt it goes on
from its checkpoint.
"""
import json
import math
import os
import pathlib
import socket
import struct
import sys
import time
import urllib.request

flags, key = {}, None
for word in sys.argv[1:]:
    name, equals, value = word.partition("=")
    if word.startswith("-"):
        key = name.lstrip("-")
        flags[key] = value
    elif key:
        flags[key] = word
program = next((w for w in sys.argv[1:] if w.endswith(".py")), sys.argv[1] if len(sys.argv) > 1 else "")


def number(*names):
    for name in names:
        try:
            return float(flags[name])
        except (KeyError, ValueError):  # an architecture is no number
            pass
    return 0.5


def crc(data):
    """The masked CRC32C of TFRecord."""
    c = 0xFFFFFFFF
    for b in data:
        c ^= b
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    c ^= 0xFFFFFFFF
    return ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", crc(length)) + data + struct.pack("<I", crc(data))


def event(step, tag, value):
    name = tag.encode()
    inner = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inner)]) + inner
    return record(b"\x09" + struct.pack("<d", time.time()) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary)


def report(epoch, metrics):
    """Report as text for every filter of the examples, or where --log-path says."""
    path = flags.get("log-path", "")
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = "".join(f"{stamp} INFO     {{metricName: {n}, metricValue: {v:.4f}}}\n{stamp} {n}={v:.6f}\n" for n, v in metrics.items())
    parent = os.path.dirname(path)
    if not os.path.isdir(path) and (parent in ("", "/") or not os.path.isdir(parent)):  # none, or not in this pod
        print(text, end="", flush=True)
        for n in ("valid_1 auc", "valid_1 binary_logloss", "training auc", "training binary_logloss"):
            v = metrics["accuracy" if n.endswith("auc") else "loss"]
            print(f"[LightGBM] [Info] Iteration:{epoch}, {n} : {v:.6f}", flush=True)
        return
    if "summaries" in path or os.path.isdir(path):
        folder = pathlib.Path(path, "test" if "summaries" in path else "")
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "events.out.tfevents.1700000000.stand-in", "ab") as f:
            if f.tell() == 0:
                f.write(record(b"\x09" + struct.pack("<d", time.time()) + b"\x1a\x0dbrain.Event:2"))
            for n, v in metrics.items():
                f.write(event(epoch, n, v))
        return
    with open(path, "a") as f:
        if path.endswith(".json"):
            f.write(json.dumps({"timestamp": time.time(), "trial": "0", "global_step": str(epoch)} | {n: str(v) for n, v in metrics.items()}) + "\n")
        else:
            f.write(text)


def collect():
    """Stand in for the image of the custom collector: report what the file has at its end."""
    metric, path, manager = flags["m"], flags["path"], flags.get("s", "katib-db-manager.kubeflow:6789")
    host, port = manager.rsplit(":", 1)
    socket.create_connection((host, int(port)), timeout=60).close()  # Katib's DBManager is there
    values = []
    while not os.path.exists(path) or "done" not in (text := open(path).read()):
        time.sleep(0.1)
    for line in text.splitlines():
        if f"{metric}=" in line:
            values.append(float(line.rpartition("=")[2]))
    for value in values:
        body = json.dumps({metric: value}).encode()
        urllib.request.urlopen(urllib.request.Request(os.environ["VERNIER_PUSH_URL"], body, {"Content-Type": "application/json"}), timeout=60)


def population():
    """Train on from the checkpoint: more, the nearer the rate is to the best one."""
    file = pathlib.Path(flags["checkpoint"], "stand-in.json")
    accuracy = json.loads(file.read_text())["accuracy"] if file.exists() else 0.0
    for epoch in range(int(number("epochs"))):
        accuracy += (1 - accuracy) * 0.02 * math.exp(-abs(math.log(number("lr") / 0.01)))
        report(epoch, {"Validation-accuracy": accuracy, "loss": 1 - accuracy, "accuracy": accuracy})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"accuracy": accuracy}))


def train():
    architecture = flags.get("architecture") or flags.get("algorithm-settings") or ""
    far = abs(math.log(max(number("lr", "learning-rate", "learning_rate", "eta"), 1e-6) / 0.02)) + abs(number("momentum") - 0.7) + len(architecture) % 7 / 10
    if program == "run_trial.py":
        print("Best-Genotype=Genotype(normal=[[('max_pooling_3x3', 0)]], normal_concat=range(2, 3))", flush=True)
    for epoch in range(1, 1 + max(1, min(5, int(number("epochs", "num_epochs", "num-epochs", "num-steps"))))):
        accuracy = 0.98 * math.exp(-far / 10) * (1 - 0.5**epoch)
        names = ("accuracy", "Validation-accuracy", "Train-accuracy", "Validation-Accuracy", "val-accuracy", "validation-accuracy", "train-accuracy")
        report(epoch, {n: accuracy for n in names} | {"loss": 1.01 - accuracy, "Training-Loss": 1.01 - accuracy, "time": 1.0})
    path = flags.get("log-path", "")
    if path.endswith(".log"):
        with open(path, "a") as f:
            f.write("done\n")


if "collect" in sys.argv[1:2]:
    collect()
elif "checkpoint" in flags:
    population()
else:
    train()
