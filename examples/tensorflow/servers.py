"""Trains with parameter servers, one graph for each worker, as the TF_CONFIG of a TFJob
says. Worker 0 prints the mean loss of all workers."""

import argparse
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()

tf.disable_v2_behavior()
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
# An Evaluator is listed too, but does not train.
cluster = tf.train.ClusterSpec({name: config["cluster"][name] for name in ("ps", "worker")})
workers = cluster.num_tasks("worker")
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()  # until the operator ends it

# In place of a data set: each worker has rows of its own.
rng = np.random.default_rng(index)
x = rng.normal(size=(256, 8)).astype(np.float32)
y = x.sum(1, keepdims=True) + 0.1 * rng.normal(size=(256, 1)).astype(np.float32)

with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
    w = tf.get_variable("w", [8, 1], initializer=tf.zeros_initializer())
    losses = tf.get_variable("losses", [workers], initializer=tf.zeros_initializer(), trainable=False)
    steps = tf.get_variable("steps", [workers], initializer=tf.zeros_initializer(), trainable=False)
    loss = tf.reduce_mean((tf.matmul(tf.constant(x), w) - y) ** 2)
    step = tf.train.GradientDescentOptimizer(args.rate).minimize(loss)
    value = tf.placeholder(tf.float32)
    tell = tf.group(tf.scatter_update(losses, [index], [value]), tf.scatter_add(steps, [index], [1.0]))

with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as session:
    for n in range(args.steps):
        session.run(step)
        session.run(tell, {value: session.run(loss)})
        # No worker runs ahead, so that the mean is of one step.
        while (done := session.run(steps)).min() <= n:
            time.sleep(0.005)
        if index == 0:
            print(f"step={n} loss={session.run(losses).mean():.6f} ranks={len(done)}", flush=True)
