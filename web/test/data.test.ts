import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { AlertSchema, TrialColumnsSchema } from "../src/api/gen/vernier/v1/dashboard_pb";
import { Experiment_State, ExperimentSchema } from "../src/api/gen/vernier/v1/experiment_pb";
import { isSame, linesOf } from "../src/data/compare";
import { countsOf, stateOf, strategiesOf } from "../src/data/experiment";
import { parseQuery, QueryError } from "../src/data/query";
import { countGpus } from "../src/pages/new";
import { boundText, counted, formatDuration, formatValue, State, STATES, TrialTable, type Bound } from "../src/data/trials";
import { View } from "../src/data/view";
import { cloned, edited } from "../src/pages/new";
import { changedBudgets } from "../src/pages/steering";
import { fewSteps } from "../src/panels/curves";
import { briefly } from "../src/panels/table";
import { newOf } from "../src/ui/bell";
import { csv } from "../src/plot/plot";

function table(more?: ConstructorParameters<typeof TrialTable>[3]) {
  const t = new TrialTable("b", [
    { name: "lr", kind: "double", log: true, min: 1e-4, max: 1 },
    { name: "opt", kind: "categorical", log: false, words: ["adam", "sgd"] },
  ], [{ metric: "loss", maximize: false }], more);
  t.apply(create(TrialColumnsSchema, {
    whole: true, total: 4, number: [0, 1, 2, 3],
    state: [State.succeeded, State.pruned, State.failed, State.running],
    createTime: [10, 20, 30, 40], startTime: [11, 21, 31, 41], endTime: [15, 25, 33, NaN], resource: [0, 0, 0, 0], continues: [-1, 0, -1, -1],
    message: { texts: ["out of memory"], index: [-1, -1, 0, -1] },
    parameters: [{ name: "lr", number: [0.1, 0.01, 0.5, NaN] }, { name: "opt", text: { texts: ["sgd", "adam"], index: [0, 1, 1, -1] } }],
    metrics: [{ name: "loss", number: [0.5, 0.3, 1e9, 0.1] }, { name: "memory", number: [9, 17, 3, 99] }], optimal: [1],
  }));
  return t;
}
const rows = (t: TrialTable, text: string) => {
  const { matches } = parseQuery(text, t);
  return Array.from({ length: t.count }, (_, i) => i).filter(matches).map((i) => t.number[i]);
};

describe("the table", () => {
  it("takes words by the order of the spec, whatever their order in the message", () => {
    const t = table();
    expect([...t.params.get("opt")!.subarray(0, 4)]).toEqual([1, 0, 0, NaN]);
  });
  it("replaces rows of the same number and keeps the others", () => {
    const t = table();
    t.apply(create(TrialColumnsSchema, {
      total: 5, number: [3, 4], state: [State.succeeded, State.pending], createTime: [40, 50], startTime: [41, NaN], endTime: [49, NaN],
      metrics: [{ name: "loss", number: [0.2, NaN] }, { name: "new", number: [7, NaN] }], optimal: [3],
    }));
    expect(t.count).toBe(5);
    expect([...t.metrics.get("loss")!.subarray(0, 5)]).toEqual([0.5, 0.3, 1e9, 0.2, NaN]);
    expect([...t.metrics.get("new")!.subarray(0, 5)]).toEqual([NaN, NaN, NaN, 7, NaN]);
    expect(t.best(t.objectives[0])).toBe(3);
  });
  it("finds the best among what the server says is optimal", () => {
    const t = table(); // trial 3 has a lower loss
    expect(t.number[t.best(t.objectives[0])]).toBe(1);
    t.optimal = [0, 1];
    expect([false, true].map((maximize) => t.number[t.best({ metric: "loss", maximize })])).toEqual([1, 0]);
    t.optimal = [];
    expect(t.best(t.objectives[0])).toBe(-1);
  });
  it("says that a trial diverged, whatever its result", () => {
    const t = table();
    t.apply(create(TrialColumnsSchema, { total: 4, number: [1, 3], state: [State.pruned, State.succeeded], diverged: { texts: ["loss NaN"], index: [0, -1] } }));
    expect([0, 1, 2, 3].map((i) => t.divergence(i))).toEqual(["", "the last value was NaN: it diverged", "", ""]);
    t.objectives.push({ metric: "memory", maximize: false });
    expect(["loss", "memory"].map((m) => t.divergence(1, m))).toEqual(["the last value of loss was NaN: it diverged", ""]);
  });
  it("marks the front of several objectives, and no best of one", () => {
    const t = table();
    t.optimal = [0, 1];
    expect([0, 1, 2, 3].filter((i) => t.onFront(i))).toEqual([]);
    t.objectives.push({ metric: "memory", maximize: false });
    expect([0, 1, 2, 3].filter((i) => t.onFront(i))).toEqual([0, 1]);
  });
  const bounds: [string, Bound, number[]][] = [
    ["memory <= 16", { metric: "memory", max: 16 }, [1]],
    ["memory >= 10", { metric: "memory", min: 10 }, [0]],
    ["9 <= memory <= 16", { metric: "memory", min: 9, max: 16 }, [1]],
    ["latency <= 1", { metric: "latency", max: 1 }, [0, 1]], // nothing was measured
  ];
  for (const [text, bound, want] of bounds) {
    it(`knows which results break ${text}, and ranks them last`, () => {
      const v = new View(table({ bounds: [bound] }), "/ns/a/experiments/b"), within = [0, 1].filter((i) => !want.includes(i));
      expect(boundText(bound)).toBe(text);
      expect([0, 1, 2, 3].filter((i) => v.table.broken(i))).toEqual(want);
      expect(v.ranked(9)).toEqual([...within, ...want.sort((a, b) => b - a)]);
      expect([0, 1, 2].filter((i) => !Number.isNaN(v.rank.value[i]))).toEqual(within);
    });
  }
  it("has values for a scale without those of failed trials", () => expect(table().sound("loss")).toEqual([0.5, 0.3, 0.1]));
  it("counts as the command line does", () => {
    const each = STATES.map((s) => [s, 1] as const);
    expect(counted(each)).toEqual({ running: 4, pending: 1, succeeded: 1, stopped: 2, failed: 3, done: 6 });
    expect(table().counts()).toEqual({ running: 1, pending: 0, succeeded: 1, stopped: 1, failed: 1, done: 3 });
    const e = create(ExperimentSchema, { trialsPending: 1, trialsRunning: 2, trialsSucceeded: 4, trialsPruned: 8, trialsKilled: 16, trialsFailed: 32, trialsUnmeasured: 64 });
    expect(countsOf(e)).toEqual({ running: 3, pending: 1, succeeded: 4, stopped: 24, failed: 96, done: 124 });
  });
  it("tells an experiment that was interrupted from one that succeeded", () => {
    const states = ["", "0 of 24"].map((interrupted) => stateOf(create(ExperimentSchema, { state: Experiment_State.SUCCEEDED, interrupted })));
    expect(states).toEqual(["succeeded", "interrupted"]);
  });
  it("says which value a metric has, where that is not the best of an objective", () => {
    const spec = { objective: { type: "minimize", objectiveMetricName: "loss", metricStrategies: [["loss", "min"], ["acc", "max"], ["memory", "best-at-step"]].map(([name, value]) => ({ name, value })) } };
    expect([...strategiesOf(create(ExperimentSchema, { spec }))]).toEqual([["acc", "max"], ["memory", "at the best step"]]);
  });
  it("names trials as the server does", () => expect([7, 12345].map((n) => table().trialName(n))).toEqual(["b-0007", "b-12345"]));
});

describe("why a trial failed", () => {
  const cases: [string, string][] = [
    ["Trial has failed. container training of pod b-0001-x exited with code 1 (ValueError: no data). Job reason: R", "exited with code 1 (ValueError: no data). Job reason: R"],
    ["Trial has failed. out of memory", "out of memory"], ["Trial has failed", "Trial has failed"], ["a forest, as the loss has steps", "a forest, as the loss has steps"],
  ];
  for (const [message, want] of cases) it(`is brief in a cell: ${message}`, () => expect(briefly(message)).toBe(want));
});

describe("the bell", () => {
  const alerts = ["ended", "failed", "goal", "diverged"].map((id) => create(AlertSchema, { id, warning: id === "failed" || id === "diverged" }));
  const cases: [string, string[], ReturnType<typeof newOf>][] = [
    ["all are new", [], { fresh: 4, warnings: 2 }],
    ["a warning was read", ["failed"], { fresh: 3, warnings: 1 }],
    ["only successes are new", ["failed", "diverged"], { fresh: 2, warnings: 0 }],
  ];
  for (const [name, known, want] of cases) it(`counts what needs its reader: ${name}`, () => expect(newOf(alerts, new Set(known))).toEqual(want));
});

describe("the query language", () => {
  const cases: [string, number[]][] = [
    ["", [0, 1, 2, 3]],
    ["state=FAILED", [2]],
    ["loss<0.4", [1, 3]],
    ["metrics.loss<0.4 AND params.lr<=0.01", [1]],
    ["state=failed OR state=running", [2, 3]],
    ["NOT (state=failed OR state=running)", [0, 1]],
    ["opt=adam lr>0.1", [2]],
    ["message:memory", [2]],
    ["prun", [1]],
    ["number>=2 ORDER BY loss DESC", [2, 3]],
    ['opt!="sgd" AND NOT state=running', [1, 2]],
  ];
  for (const [text, want] of cases) it(JSON.stringify(text), () => expect(rows(table(), text)).toEqual(want));
  it("orders by several columns", () => expect(parseQuery("ORDER BY loss DESC, number", table()).order).toEqual([{ key: "loss", descending: true }, { key: "number", descending: false }]));
  for (const [text, want] of [["lss<1", "no column lss"], ["loss<", "a value is missing"], ["(loss<1", "not closed"], ["loss<low", "not a number"], ["AND", "a condition is missing before AND"], ["ORDER loss", "needs BY"], ["loss<1)", "not expected"]]) {
    it(`says what is wrong with ${text}`, () => expect(() => rows(table(), text)).toThrow(new RegExp(want)));
  }
  it("fails on no text in any other way than by saying so", () => {
    const t = table(), parts = ["loss", "<", "AND", "(", ")", "NOT", "ORDER", "BY", '"', "0.3", "=", ":", "\\", ",", " "];
    for (let seed = 1; seed < 4000; seed++) {
      let x = seed, text = "";
      for (let k = 0; k < 9; k++) { x = (x * 1103515245 + 12345) & 0x7fffffff; text += parts[(x >> 8) % parts.length]; }
      try { rows(t, text); } catch (err) { expect(err).toBeInstanceOf(QueryError); }
    }
  });
});

describe("the view", () => {
  it("filters by query and brush together, and keeps both in the address", () => {
    const v = new View(table(), "/ns/a/experiments/b"); // the address says loss<1
    expect([...v.mask.value]).toEqual([1, 1, 0, 1]);
    v.setBrush("params.lr", [0.05, 0.2]);
    expect([...v.mask.value]).toEqual([1, 0, 0, 0]);
    expect(location.href).toContain("b=params.lr");
    v.setBrush("params.lr", null);
    v.select([3, 1]);
    expect([...v.selected.value]).toEqual([3, 1]);
    expect(v.shown.value).toBe(3);
    v.clear();
  });
});

describe("what is compared", () => {
  const int = (name: string) => ({ name, kind: "int" as const, log: false, min: 1, max: 99 });
  const of = (resource: number[], epochs = resource, x = resource.map((_, i) => i)) => {
    const t = new TrialTable("b", [int("x"), int("epochs")], [{ metric: "loss", maximize: false }], { length: "epochs" }), each = <T>(v: T) => resource.map(() => v);
    t.apply(create(TrialColumnsSchema, {
      parameters: [{ name: "x", number: x }, { name: "epochs", number: epochs.map((n) => n || NaN) }],
      whole: true, total: resource.length, number: resource.map((_, i) => i), state: each(State.succeeded), resource,
      createTime: each(0), startTime: each(0), endTime: each(1), continues: each(-1), metrics: [{ name: "loss", number: resource.map((_, i) => i) }],
    }));
    return new View(t, "/ns/a/experiments/b");
  };
  const times = (n: number, resource: number) => Array(n).fill(resource);
  const cases: [string, number[], string | null][] = [
    ["nothing", [], null], ["all, where all are whole", times(5, 0), null],
    ["the longest, of enough", [...times(20, 3), ...times(12, 9), ...times(8, 27)], "of 8 trials with epochs=27; 32 others are left out"],
    ["shorter ones, of too few", [...times(20, 3), ...times(12, 9), ...times(7, 27)], "of 12 trials with epochs=9; 27 others are left out"],
    ["most, where none are enough", [...times(5, 3), ...times(6, 9), ...times(2, 27)], "of 6 trials with epochs=9; 7 others are left out"],
    ["those that had all of it with the longest", [...times(4, 0), ...times(20, 3), ...times(4, 27)], "of 8 trials with epochs=27; 20 others are left out"],
  ];
  for (const [name, resource, want] of cases) it(name, () => expect(of(resource).noted(null)).toBe(want));
  it("points, each once however often it was tried", () => {
    const x = [...times(10, 1), ...Array(8).keys()];
    expect(of([...times(10, 27), ...times(8, 3)], undefined, x).noted(null)).toBe("of 8 trials with epochs=3; 10 others are left out");
  });
  it("a trial that a user queued, of which only the parameter is known", () => {
    expect(of([27, 0, 0], [27, 27, 3]).noted(null)).toBe("of 2 trials with epochs=27; 1 others are left out");
  });
  it("without the parameter that all of them have alike", () => expect(of([]).table.varied.map((s) => s.name)).toEqual(["x"]));
  it("has ranks, and no other", () => expect([...of([3, 27, 27]).rank.value]).toEqual([NaN, 0, 1]));
});

describe("budgets", () => {
  const now = { maxTrialCount: 8, maxDuration: "1h0m0s", maxGPUHours: 2 };
  const cases: [string, Record<string, string>, object][] = [
    ["stay", {}, {}],
    ["change", { maxTrialCount: "9", maxTrialDuration: "5m", maxGPUHours: "2.5" }, { maxTrialCount: 9, maxTrialDuration: "5m", maxGPUHours: 2.5 }],
    ["are taken away, but for counts", { maxTrialCount: "", maxDuration: " ", maxGPUHours: "" }, { maxDuration: undefined, maxGPUHours: undefined }],
  ];
  for (const [name, given, want] of cases) it(name, () => expect(changedBudgets(now, (key) => given[key] ?? String(now[key as keyof typeof now] ?? ""))).toStrictEqual(want));
});

describe("trials beside each other", () => {
  it("differ in what four digits do not show, and are saved with all of them", () => {
    const t = table();
    t.apply(create(TrialColumnsSchema, {
      whole: true, total: 2, number: [0, 1], state: [State.succeeded, State.succeeded], createTime: [1, 1], startTime: [1, 1], endTime: [3, 4],
      parameters: [{ name: "lr", number: [0.123401, 0.123402] }, { name: "opt", text: { texts: ["sgd"], index: [0, 0] } }],
      metrics: [{ name: "loss", number: [-0.5, NaN] }],
    }));
    const lines = linesOf(t, [0, 1]);
    expect(lines.filter(isSame).map((l) => l.name)).toEqual(["opt"]);
    expect(csv({ head: ["", "0", "1"], rows: lines.map((l) => [l.name, ...l.values]) })).toBe(",0,1\nstate,succeeded,succeeded\nloss,-0.5,\nmemory,,\nlr,0.123401,0.123402\nopt,sgd,sgd\nduration,2,3\n");
    expect(lines.find((l) => l.name === "loss")!.cells).toEqual(["−0.5", "–"]);
  });
});

describe("the axis of curves", () => {
  const curve = (steps: number, points: number) => ({ x: Array.from({ length: steps }, (_, k) => k + 1), points: BigInt(points) });
  it.each([
    ["one epoch of many lines", [curve(1, 100)], true],
    ["three epochs of many lines, and one trial that has begun", [curve(3, 300), curve(1, 1)], true],
    ["a value for each step", [curve(3, 3)], false],
    ["few values", [curve(1, 5)], false],
    ["one trial with many steps", [curve(1, 100), curve(50, 50)], false],
    ["no curve", [], false],
  ])("is time where steps hide the curve: %s", (_, curves, want) => expect(fewSteps(curves)).toBe(want));
});

describe("texts", () => {
  it("numbers are short", () => expect([0.00012345, 123456789, 0.123456, -3, NaN, Infinity].map(formatValue)).toEqual(["1.23e−4", "1.23e8", "0.1235", "−3", "–", "∞"]));
  it("GPUs of all replicas", () => {
    const pod = (gpus: unknown) => ({ spec: { initContainers: [{ resources: { limits: { "nvidia.com/gpu": 8 } } }], containers: [{ resources: { limits: { "nvidia.com/gpu": gpus, cpu: 4 }, requests: { "nvidia.com/gpu": gpus } } }] } });
    expect(countGpus({ spec: { template: pod(2) } })).toBe(2);
    expect(countGpus({ spec: { parallelism: 3, template: pod("1") } })).toBe(3);
    expect(countGpus({ spec: { pytorchReplicaSpecs: { Master: { replicas: 1, template: pod(1) }, Worker: { replicas: 3, template: pod(2) } } } })).toBe(7);
    expect(countGpus({ spec: { trainer: { numNodes: 4, resourcesPerNode: { limits: { "nvidia.com/gpu": 1 } } } } })).toBe(4);
    expect(countGpus({ spec: { replicas: "${trialParameters.n}", template: pod("${trialParameters.gpus}") } })).toBe(0);
  });
  it("durations", () => expect([0.2, 5, 9.97, 65, 1079.7, 3700, 7199.6, 90000, 172790, NaN].map(formatDuration)).toEqual(["200 ms", "5.0 s", "10 s", "1 min 5 s", "18 min 0 s", "1 h 2 min", "2 h 0 min", "1 d 1 h", "2 d 0 h", "–"]));
  it("a CSV holds no formula", () => expect(csv({ head: ["a", "b"], rows: [["=1+1", 2], ['say "x", y', NaN], ["-3.5", 1]] })).toBe("a,b\n'=1+1,2\n\"say \"\"x\"\", y\",\n-3.5,1\n"));
  it("a clone has a name of its own and nothing of the object", () => {
    const y = cloned("# mine\nmetadata:\n  name: tune-9\n  namespace: a\n  uid: x\nspec: {maxTrialCount: 3} # few\nstatus: {trials: 3}\n");
    expect(y).toContain("name: tune-10");
    expect(y).toContain("# few");
    expect(y).not.toMatch(/uid|status|namespace/);
  });
  const rule = ["spec", "earlyStopping", "algorithmName"];
  const edits: [string, string, (string | number)[], unknown, unknown][] = [
    ["a rule is named", "spec: {}", rule, "asha", { spec: { earlyStopping: { algorithmName: "asha" } } }],
    ["no rule is wanted any more", "spec: {earlyStopping: {algorithmName: asha, algorithmSettings: []}}", rule, "", { spec: {} }],
    ["a goal is taken away", "spec: {objective: {type: minimize, goal: 1}}", ["spec", "objective", "goal"], "", { spec: { objective: { type: "minimize" } } }],
    ["a parameter is taken away", "spec: {parameters: [{name: a}, {name: b}]}", ["spec", "parameters", 0], undefined, { spec: { parameters: [{ name: "b" }] } }],
  ];
  for (const [name, yaml, path, v, want] of edits) it(`of the form: ${name}`, () => expect(parse(edited(yaml, path, v))).toEqual(want));
  it("a clone of an experiment that was stopped runs, and keeps what its user wrote", () => {
    const y = cloned('metadata:\n  name: tune\n  annotations:\n    vernier.ml/end: cancel\n    vernier.ml/interrupted: 4 of 24\n    vernier.ml/alerts-sent: "{}"\n    vernier.ml/origin: x\n    vernier.ml/notes: a try\n    team/cost: "7"\n');
    expect(Object.keys(parse(y).metadata.annotations)).toEqual(["vernier.ml/notes", "team/cost"]);
  });
});
