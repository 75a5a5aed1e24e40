"""Loads one event file with TensorBoard's own Python reader; prints the CPU time."""
import json
import sys
import time

from tensorboard.backend.event_processing import event_accumulator

begin = time.process_time()
loaded = event_accumulator.EventAccumulator(
    sys.argv[1], size_guidance={event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0}
)
loaded.Reload()
seconds = time.process_time() - begin
tags = loaded.Tags()
points = sum(len(loaded.Scalars(tag)) for tag in tags["scalars"])
points += sum(len(loaded.Tensors(tag)) for tag in tags["tensors"])
print(json.dumps({"seconds": seconds, "points": points}))
