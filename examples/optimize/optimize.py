"""Minimises a function with Vernier: python3 optimize.py [ALGORITHM]"""
import json, math, os, subprocess, sys


class Vernier:
    def __init__(self, *arguments):
        command = [os.environ.get("VERNIER", "vernier"), "optimize", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def loss(lr, layers, optimizer, momentum=0.9):
    """Stands in for a training run; the best is 0, at lr 0.01 and 3 layers."""
    return math.log10(lr / 0.01) ** 2 + 0.1 * abs(layers - 3) + (optimizer == "adam") * 0.05 + (momentum - 0.9) ** 2


space = os.path.join(os.path.dirname(os.path.abspath(__file__)), "space.json")
algorithm = sys.argv[1] if len(sys.argv) > 1 else "bayesianoptimization"
vernier = Vernier("--space", space, "--algorithm", algorithm, "--seed", "1")
best = None
for _ in range(10):
    answer = vernier(ask=4)  # four at a time, as if four machines were working
    results = []
    for trial in answer["trials"]:
        value = loss(**trial["params"])
        results.append({"number": trial["number"], "state": "succeeded", "values": [value]})
        if best is None or value < best[0]:
            best = (value, trial)
    vernier(tell=results)
    if answer["exhausted"]:
        break
print(f"best: loss {best[0]:.4f} in trial {best[1]['number']} with {best[1]['params']}")
