// The trials of an experiment as typed columns. One table is read by all panels;
// `revision` changes at most once a frame, however many updates came.
import { signal } from "@preact/signals";
import type { TrialColumns } from "../api/gen/vernier/v1/dashboard_pb";

export const STATES = [
  "unknown", "pending", "running", "stopping", "succeeded", "pruned", "failed", "infeasible", "unmeasured", "cancelled",
] as const;
export type StateName = (typeof STATES)[number];
export const State = Object.fromEntries(STATES.map((s, i) => [s, i])) as Record<StateName, number>;

export const isLive = (s: number) => s === State.pending || s === State.running || s === State.stopping;
/** Whether the values of a trial count as a result. */
export const isResult = (s: number) => s === State.succeeded || s === State.pruned;
/** Whether a trial has gone well so far: scales are made for the values of these. */
export const isSound = (s: number) => isResult(s) || isLive(s);

/** Numbers of trials by what a person asks about, as the command line counts them (cmd/vernier/counts.go). */
export interface Counts {
  /** That have not ended, and those of them that wait for a worker or a machine. */
  running: number;
  pending: number;
  succeeded: number;
  /** Stopped early or killed. */
  stopped: number;
  /** Those without a value of an objective too. */
  failed: number;
  /** That have ended in any way. */
  done: number;
}

export function counted(states: Iterable<readonly [StateName, number]>): Counts {
  const c: Counts = { running: 0, pending: 0, succeeded: 0, stopped: 0, failed: 0, done: 0 };
  for (const [state, n] of states) {
    switch (state) {
      case "succeeded": c.succeeded += n; break;
      case "pruned": case "cancelled": c.stopped += n; break;
      case "failed": case "infeasible": case "unmeasured": c.failed += n; break;
      case "pending": c.pending += n; c.running += n; break;
      default: c.running += n;
    }
  }
  c.done = c.succeeded + c.stopped + c.failed;
  return c;
}

export type ParamKind = "double" | "int" | "categorical" | "discrete";

export interface ParamSpec {
  name: string;
  kind: ParamKind;
  log: boolean;
  min?: number;
  max?: number;
  words?: string[];
}

export interface Objective {
  metric: string;
  maximize: boolean;
  goal?: number;
}

export const goodEnd = (o: Objective) => (o.maximize ? "high" : "low");

/** What a metric must not leave: a result that does is never the best. */
export interface Bound {
  metric: string;
  min?: number;
  max?: number;
}

/** "memory <= 16", as the command line writes it. */
export const boundText = ({ metric, min, max }: Bound) => `${min === undefined ? "" : max === undefined ? "" : `${min} <= `}${metric}${max !== undefined ? ` <= ${max}` : ` >= ${min}`}`;

function grow<T extends Float64Array | Int32Array | Uint8Array>(a: T, size: number, fill: number): T {
  const b = new (a.constructor as new (n: number) => T)(size);
  b.set(a as never);
  b.fill(fill, a.length);
  return b;
}

/** The time, in milliseconds: a shared file stands still at that of its data. */
export const clock = { now: () => Date.now() };

export class TrialTable {
  readonly revision = signal(0);
  count = 0;
  number = new Int32Array(0);
  state = new Uint8Array(0);
  created = new Float64Array(0);
  ended = new Float64Array(0);
  started = new Float64Array(0);
  resource = new Float64Array(0);
  parent = new Int32Array(0);
  message: string[] = [];
  /** The objective that has diverged and its newest value, as "loss NaN"; else "". */
  last: string[] = [];
  /** Numbers of the best trials, as the server says. */
  optimal: number[] = [];
  updates = 0;
  params = new Map<string, Float64Array>();
  metrics = new Map<string, Float64Array>();
  /** What trials that have ended used of their machines; empty where that is not known. */
  usage = new Map<string, Float64Array>();
  private rows = new Map<number, number>();
  private frame = 0;
  private rest = 0;
  private words = new Map<string, Map<string, number>>();

  readonly experiment: string;
  readonly specs: ParamSpec[];
  readonly objectives: Objective[];
  /** The parameter that says how long a trial trains, if one does. */
  readonly length: string;
  /** The others: of that one, results that are compared have the same value. */
  readonly varied: ParamSpec[];

  /** What results are held to. */
  readonly bounds: Bound[];
  /** Which of its values a metric has: min, max, latest or that at the step where the objective is best. */
  readonly strategies: Map<string, string>;

  /** experiment is its name without the namespace. */
  constructor(experiment: string, specs: ParamSpec[], objectives: Objective[], { length = "", bounds = [] as Bound[], strategies = new Map<string, string>() } = {}) {
    this.length = length;
    this.bounds = bounds;
    this.strategies = strategies;
    this.varied = specs.filter((s) => s.name !== length);
    this.experiment = experiment;
    this.specs = specs;
    this.objectives = objectives;
    for (const s of specs) {
      this.params.set(s.name, new Float64Array(0));
      if (s.words) this.words.set(s.name, new Map(s.words.map((w, i) => [w, i])));
    }
    for (const o of objectives) this.metrics.set(o.metric, new Float64Array(0));
  }

  trialName(number: number): string {
    return `${this.experiment}-${String(number).padStart(4, "0")}`;
  }

  row(number: number): number {
    return this.rows.get(number) ?? -1;
  }

  /** Takes rows in: new ones, or newer states of those that are there. */
  apply(c: TrialColumns) {
    if (c.whole) {
      this.count = 0;
      this.rows.clear();
      for (const m of [this.params, this.metrics, this.usage]) for (const v of m.values()) v.fill(NaN);
    }
    this.reserve(Math.max(c.total, this.count));
    const n = c.number.length;
    const at = new Int32Array(n);
    for (let k = 0; k < n; k++) {
      const i = (at[k] = this.place(c.number[k]));
      this.state[i] = c.state[k];
      this.created[i] = c.createTime[k];
      this.started[i] = c.startTime[k];
      this.ended[i] = c.endTime[k];
      this.resource[i] = c.resource[k] ?? 0;
      this.parent[i] = c.continues[k] ?? -1;
      this.last[i] = c.diverged?.texts[c.diverged.index[k]] ?? "";
      this.message[i] = c.message?.texts[c.message.index[k]] ?? "";
    }
    for (const p of c.parameters) {
      const to = this.params.get(p.name);
      if (!to) continue;
      const codes = p.text?.texts.map((w) => this.code(p.name, w));
      for (let k = 0; k < n; k++) to[at[k]] = p.text ? (codes![p.text.index[k]] ?? NaN) : p.number[k];
    }
    for (const [columns, into] of [[c.metrics, this.metrics], [c.usage, this.usage]] as const) {
      for (const m of columns) {
        const to = this.columnOf(into, m.name);
        for (let k = 0; k < n; k++) to[at[k]] = m.number[k];
      }
    }
    this.optimal = c.optimal;
    this.updates++;
    this.changed();
  }

  /** The row of a trial, which is made if there is none. */
  place(number: number): number {
    const there = this.rows.get(number);
    if (there !== undefined) return there;
    if (this.count === this.number.length) this.reserve(Math.max(256, this.count * 2));
    const i = this.count++;
    this.rows.set(number, i);
    this.number[i] = number;
    return i;
  }

  private columnOf(all: Map<string, Float64Array>, name: string): Float64Array {
    let c = all.get(name);
    if (!c) {
      c = new Float64Array(this.number.length).fill(NaN);
      all.set(name, c);
    }
    return c;
  }

  /** A value of a parameter as a number: the index of a word. */
  code(param: string, v: number | string): number {
    const words = this.words.get(param);
    if (words) return words.get(String(v)) ?? NaN;
    return typeof v === "number" ? v : Number(v);
  }

  /** What code stands for, for people. */
  text(param: ParamSpec, v: number): string {
    if (Number.isNaN(v)) return "";
    return param.words ? (param.words[v] ?? "") : formatValue(v);
  }

  /** Makes room for as many trials. */
  reserve(size: number) {
    if (size <= this.number.length) return;
    this.number = grow(this.number, size, -1);
    this.state = grow(this.state, size, 0);
    this.parent = grow(this.parent, size, -1);
    this.resource = grow(this.resource, size, 0);
    this.started = grow(this.started, size, NaN);
    this.created = grow(this.created, size, NaN);
    this.ended = grow(this.ended, size, NaN);
    for (const m of [this.params, this.metrics, this.usage]) for (const [k, v] of m) m.set(k, grow(v, size, NaN));
  }

  /**
   * Tells the panels, at most once a frame, and so rarely that drawing takes at most
   * a tenth of the time: the page stays quick however many trials there are.
   */
  changed() {
    if (this.frame) return;
    const publish = () => {
      const before = performance.now();
      this.revision.value++; // the panels draw now
      this.rest = performance.now() + 9 * (performance.now() - before);
      this.frame = 0;
    };
    this.frame = 1;
    setTimeout(() => requestAnimationFrame(publish), Math.max(0, this.rest - performance.now()));
  }

  /** The column behind a word of the query language or a sort key. */
  column(key: string): ((i: number) => number | string) | undefined {
    switch (key) {
      case "number": return (i) => this.number[i];
      case "state": return (i) => STATES[this.state[i]];
      case "name": return (i) => this.trialName(this.number[i]);
      case "message": return (i) => this.message[i];
      case "created": return (i) => this.created[i];
      case "resource": return (i) => this.resource[i];
      case "duration": return (i) => this.duration(i);
    }
    const [kind, ...rest] = key.split(".");
    const name = rest.join(".");
    const spec = this.specs.find((s) => s.name === (kind === "params" ? name : key));
    if (spec && (kind === "params" || rest.length === 0)) {
      return spec.words ? (i) => this.text(spec, this.params.get(spec.name)![i]) : (i) => this.params.get(spec.name)![i];
    }
    if (kind === "usage" && this.usage.has(name)) return (i) => this.usage.get(name)![i];
    const metric = kind === "metrics" ? name : key;
    if (this.metrics.has(metric)) return (i) => this.metrics.get(metric)![i];
    return undefined;
  }

  counts(): Counts {
    const n = new Array<number>(STATES.length).fill(0);
    for (let i = 0; i < this.count; i++) n[this.state[i]]++;
    return counted(STATES.map((s, k) => [s, n[k]]));
  }

  duration(i: number): number {
    const end = Number.isNaN(this.ended[i]) ? (isLive(this.state[i]) ? clock.now() / 1000 : NaN) : this.ended[i];
    return end - (Number.isNaN(this.started[i]) ? this.created[i] : this.started[i]);
  }

  /** The values of a metric that a scale is made for. */
  sound(metric: string): number[] {
    return [...(this.metrics.get(metric)?.subarray(0, this.count) ?? [])].filter((_, i) => isSound(this.state[i]));
  }

  /** The bound that a result breaks; without a value of the metric it does. */
  broken(i: number): Bound | undefined {
    if (!isResult(this.state[i])) return undefined;
    return this.bounds.find(({ metric, min = -Infinity, max = Infinity }) => {
      const v = this.metrics.get(metric)?.[i] ?? NaN;
      return !(Number.isFinite(v) && v >= min && v <= max);
    });
  }

  /** That a trial diverged, in a metric if one is named, as the command line says it; its result may be of before. */
  divergence(i: number, metric?: string): string {
    const last = this.last[i] ?? "", at = last.lastIndexOf(" "), of = last.slice(0, at);
    if (at < 0 || (metric ?? of) !== of) return "";
    return `the last value${this.objectives.length > 1 ? ` of ${of}` : ""} was ${last.slice(at + 1)}: it diverged`;
  }

  /** Whether a trial is one of those that no other beats in all of several objectives. */
  onFront(i: number): boolean {
    return this.objectives.length > 1 && this.optimal.includes(this.number[i]);
  }

  /** The best row by an objective, of those that the server says are optimal, or -1. NaN is never the best. */
  best(o: Objective): number {
    const v = this.metrics.get(o.metric);
    let at = -1;
    for (const i of this.optimal.map((n) => this.row(n))) {
      if (!v || i < 0 || Number.isNaN(v[i])) continue;
      if (at < 0 || (o.maximize ? v[i] > v[at] : v[i] < v[at])) at = i;
    }
    return at;
  }
}

/** A number in at most six characters or so. */
export function formatValue(v: number): string {
  if (!Number.isFinite(v)) return Number.isNaN(v) ? "–" : v > 0 ? "∞" : "−∞";
  const a = Math.abs(v);
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) return v.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e").replaceAll("-", "−");
  if (Number.isInteger(v)) return String(v).replace("-", "−");
  return String(+v.toPrecision(4)).replace("-", "−");
}

export function formatBytes(n: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let k = 0;
  for (; n >= 999.5 && k < units.length - 1; k++) n /= 1000;
  return `${k === 0 || n >= 99.95 ? Math.round(n) : n.toFixed(1)} ${units[k]}`;
}

export function formatDuration(s: number): string {
  if (!Number.isFinite(s)) return "–";
  s = Math.max(0, s);
  if (s >= 9.95) s = Math.round(s);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  const minutes = Math.round(s / 60), hours = Math.round(s / 3600);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How long ago something was, of seconds since the epoch. */
export function formatAge(at: number, now = clock.now()): string {
  const s = now / 1000 - at;
  if (!Number.isFinite(s)) return "–";
  if (s < 60) return `${Math.max(0, Math.floor(s))} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}
