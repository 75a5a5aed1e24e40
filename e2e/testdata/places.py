"""A parameter server counts who says hello to it; a worker says it to all servers.

The first worker prints its loss when all servers have heard from all workers.
"""
import argparse
import socket
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", required=True)
parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
args = parser.parse_args()
servers, workers = args.ps_hosts.split(","), args.worker_hosts.split(",")


def say(host, word):
    """Send a word to a server, which may not be there yet, and return its answer."""
    name, port = host.split(":")
    while True:
        try:
            with socket.create_connection((name, int(port)), timeout=10) as s:
                s.sendall(word.encode() + b"\n")
                return s.makefile().readline().strip()
        except OSError:
            time.sleep(0.1)


if args.job_name == "ps":
    heard = set()
    with socket.create_server(("", int(servers[args.task_index].split(":")[1])), backlog=64) as listener:
        while True:
            s, _ = listener.accept()
            with s:
                heard.add(s.makefile().readline().strip())
                s.sendall(f"{args.task_index} {len(heard)}\n".encode())

for i, server in enumerate(servers):
    while say(server, f"worker {args.task_index}") != f"{i} {len(workers)}":
        time.sleep(0.1)
print(f"loss={args.lr if args.task_index == 0 else -1}")
