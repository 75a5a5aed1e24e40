// An experiment that is looked at: its object, its trials, its view.
import type { JsonObject } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { signal } from "@preact/signals";
import { experiments } from "../api/client";
import { watch } from "../api/live";
import { Experiment_State, type Experiment } from "../api/gen/vernier/v1/experiment_pb";
import { counted, TrialTable, type Bound, type Objective, type ParamSpec } from "./trials";
import { View } from "./view";

export interface Place {
  namespace: string;
  experiment: string;
}
export const nameOf = (p: Place) => `namespaces/${p.namespace}/experiments/${p.experiment}`;
export const pathOf = (p: Place) => `/ns/${p.namespace}/experiments/${p.experiment}`;

/** The page of a trial, by its resource name. */
export const trialPathOf = (name: string) => `${pathOf(placeOf(name))}/trials/${name.split("/")[5]}`;

export function placeOf(name: string): Place {
  const [, namespace, , experiment] = name.split("/");
  return { namespace, experiment };
}

export const seconds = (t?: Timestamp) => (t ? Number(t.seconds) + t.nanos / 1e9 : NaN);

type Spec = {
  parameters?: { name: string; parameterType: string; feasibleSpace?: { min?: string; max?: string; list?: string[]; distribution?: string } }[];
  objective?: { type: string; goal?: number; objectiveMetricName: string; metricStrategies?: { name: string; value: string }[] };
  objectives?: { type: string; goal?: number; objectiveMetricName: string }[];
  constraints?: { metricName: string; min?: number; max?: number }[];
  algorithm?: { algorithmName: string; algorithmSettings?: { name: string; value: string }[] };
  earlyStopping?: { algorithmName: string };
  parallelTrialCount?: number;
  maxTrialCount?: number;
  maxFailedTrialCount?: number;
  maxDuration?: string;
  maxTrialDuration?: string;
  maxGPUHours?: number;
  trialTemplate?: JsonObject;
};
export const specOf = (e: Experiment) => (e.spec ?? {}) as unknown as Spec;

export function parametersOf(e: Experiment): ParamSpec[] {
  return (specOf(e).parameters ?? []).map((p) => {
    const f = p.feasibleSpace ?? {};
    const list = f.list ?? [];
    const numeric = p.parameterType === "discrete" && list.every((w) => w.trim() !== "" && !Number.isNaN(Number(w)));
    const values = numeric ? list.map(Number) : [];
    return {
      name: p.name,
      kind: p.parameterType as ParamSpec["kind"],
      log: /^log/i.test(f.distribution ?? ""),
      min: numeric ? Math.min(...values) : f.min === undefined ? undefined : Number(f.min),
      max: numeric ? Math.max(...values) : f.max === undefined ? undefined : Number(f.max),
      words: list.length > 0 && !numeric ? list : undefined,
    };
  });
}

export function objectivesOf(e: Experiment): Objective[] {
  const s = specOf(e);
  const all = s.objectives?.length ? s.objectives : s.objective ? [s.objective] : [];
  return all.map((o) => ({ metric: o.objectiveMetricName, maximize: o.type === "maximize", goal: o.goal }));
}

export const boundsOf = (e: Experiment): Bound[] => (specOf(e).constraints ?? []).map(({ metricName, min, max }) => ({ metric: metricName, min, max }));

/** Which of their values the other metrics have; an objective has its best one unless told otherwise. */
export function strategiesOf(e: Experiment): Map<string, string> {
  const usual = new Map(objectivesOf(e).map((o) => [o.metric, o.maximize ? "max" : "min"]));
  return new Map((specOf(e).objective?.metricStrategies ?? []).filter((s) => usual.get(s.name) !== s.value).map((s) => [s.name, s.value === "best-at-step" ? "at the best step" : s.value]));
}

/** Its trials, by its status. */
export const countsOf = (e: Experiment) => counted([
  ["pending", e.trialsPending], ["running", e.trialsRunning], ["succeeded", e.trialsSucceeded], ["pruned", e.trialsPruned],
  ["cancelled", e.trialsKilled], ["failed", e.trialsFailed], ["unmeasured", e.trialsUnmeasured],
]);

export type ExperimentState = "running" | "paused" | "succeeded" | "interrupted" | "failed" | "unknown";
export function stateOf(e: Experiment): ExperimentState {
  switch (e.state) {
    case Experiment_State.ACTIVE: return e.suspended ? "paused" : "running";
    case Experiment_State.SUCCEEDED: return e.interrupted ? "interrupted" : "succeeded";
    case Experiment_State.FAILED: return "failed";
    default: return "unknown";
  }
}

export class Model {
  readonly place: Place;
  readonly experiment = signal<Experiment | null>(null);
  readonly table = signal<TrialTable | null>(null);
  readonly loaded = signal(false);
  readonly error = signal<unknown>(null);
  /** That it was deleted while it was shown. */
  readonly gone = signal(false);
  view: View | null = null;
  private ends: (() => void)[] = [];
  private again = 0;
  private closed = false;

  constructor(place: Place) {
    this.place = place;
    void this.open();
  }

  private async open() {
    try {
      const e = await experiments.getExperiment({ name: nameOf(this.place) });
      if (this.closed) return;
      const table = new TrialTable(this.place.experiment, parametersOf(e), objectivesOf(e), {
        length: specOf(e).algorithm?.algorithmSettings?.find((s) => s.name === "resource_name")?.value, bounds: boundsOf(e), strategies: strategiesOf(e),
      });
      this.view = new View(table, pathOf(this.place));
      this.experiment.value = e;
      this.table.value = table;
      this.error.value = null;
      this.ends.push(
        watch({ case: "trials", value: nameOf(this.place) }, (c) => {
          if (c.case === "end") this.gone.value = true;
          if (c.case !== "trials") return;
          table.apply(c.value);
          this.gone.value = false;
          this.loaded.value = true;
          this.refresh();
          return table.count <= c.value.total; // else trials were deleted
        }),
      );
    } catch (err) {
      this.error.value = err;
      if (!this.closed) this.ends.push(later(() => void this.open(), 5_000));
    }
  }

  /** Reads the experiment again, soon. */
  refresh() {
    if (this.again) return;
    this.again = setTimeout(async () => {
      this.again = 0;
      try {
        if (!this.closed) this.experiment.value = await experiments.getExperiment({ name: nameOf(this.place) });
      } catch { /* the next change asks again */ }
    }, 500) as unknown as number;
  }

  close() {
    this.closed = true;
    clearTimeout(this.again);
    this.ends.forEach((end) => end());
  }
}

function later(f: () => void, ms: number): () => void {
  const t = setTimeout(f, ms);
  return () => clearTimeout(t);
}
