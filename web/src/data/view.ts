// What is filtered, brushed, selected and sorted on an experiment's pages: one
// state for all panels, kept in the address.
import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { query, search, setQuery } from "../router";
import { parseQuery, QueryError, type Query } from "./query";
import { isResult, isSound, type Objective, type TrialTable } from "./trials";

/** An axis is "params.x", "metrics.y", "number" or "duration". */
export type Brush = Map<string, [number, number]>;

export class View {
  readonly table: TrialTable;
  readonly path: string;
  readonly hover = signal(-1); // the row under the pointer, in any panel
  readonly text = computed(() => query.value.get("q") ?? "");
  readonly brush: ReadonlySignal<Brush> = computed(() => readBrush(query.value.get("b") ?? ""));
  readonly selected: ReadonlySignal<Set<number>> = computed(
    () => new Set((query.value.get("s") ?? "").split(",").filter(Boolean).map(Number).filter(Number.isInteger)),
  );
  readonly objective: ReadonlySignal<Objective>;
  readonly parsed: ReadonlySignal<{ query?: Query; error?: string }>;
  /** 1 for each row that the filter and the brushes let through. */
  readonly mask: ReadonlySignal<Uint8Array>;
  readonly shown: ReadonlySignal<number>;
  readonly best: ReadonlySignal<number>;
  /** Which results are compared: side is 0 for them, below it for trials that were shorter. of is what a row had of the resource. */
  readonly compared: ReadonlySignal<{ side: Int8Array; note: string | null; of: (i: number) => number }>;
  /** How good each result is among those: 0 the best, 1 the worst, NaN without a result and for one that breaks a bound. */
  readonly rank: ReadonlySignal<Float64Array>;

  /** path is that of the experiment's page. */
  constructor(table: TrialTable, path: string) {
    this.table = table;
    this.path = path;
    this.objective = computed(() => {
      const m = query.value.get("m");
      return table.objectives.find((o) => o.metric === m) ?? table.objectives[0] ?? { metric: "", maximize: false };
    });
    this.parsed = computed(() => {
      table.revision.value; // columns may be new
      try {
        return { query: parseQuery(this.text.value, table) };
      } catch (err) {
        if (err instanceof QueryError) return { error: err.message };
        throw err;
      }
    });
    this.mask = computed(() => {
      table.revision.value;
      const mask = new Uint8Array(table.count).fill(1);
      const matches = this.text.value ? this.parsed.value.query?.matches : undefined;
      if (matches) for (let i = 0; i < mask.length; i++) if (!matches(i)) mask[i] = 0;
      for (const [axis, [low, high]] of this.brush.value) {
        const v = numbers(table, axis);
        if (v) for (let i = 0; i < mask.length; i++) if (!(v(i) >= low && v(i) <= high)) mask[i] = 0;
      }
      return mask;
    });
    this.shown = computed(() => this.mask.value.reduce((a, b) => a + b, 0));
    this.best = computed(() => {
      table.revision.value;
      return table.best(this.objective.value);
    });
    this.compared = computed(() => {
      table.revision.value;
      return compare(table, this.objective.value);
    });
    this.rank = computed(() => {
      table.revision.value;
      return ranks(table, this.objective.value, this.compared.value.side);
    });
  }

  setText(q: string) {
    setQuery({ q });
  }
  setBrush(axis: string, range: [number, number] | null) {
    const b = new Map(this.brush.value);
    if (range) b.set(axis, range);
    else b.delete(axis);
    setQuery({ b: [...b].map(([k, [lo, hi]]) => `${encodeURIComponent(k)}~${short(lo)}~${short(hi)}`).join("!") });
  }
  select(numbers: Iterable<number>) {
    setQuery({ s: [...numbers].slice(0, 50).join(",") });
  }
  toggle(number: number) {
    const s = new Set(this.selected.value);
    if (!s.delete(number)) s.add(number);
    this.select(s);
  }
  clear() {
    setQuery({ q: null, b: null, s: null });
  }
  /** The page of a trial, which keeps what is filtered. */
  trialPath(number: number): string {
    return `${this.path}/trials/${this.table.trialName(number)}${search()}`;
  }

  /** A note of a plot that compares results, with what becomes of the others. */
  noted(text: string | null, others = "are left out"): string | null {
    const { note } = this.compared.value;
    return [text, note && `${note} ${others}`].filter(Boolean).join("; ") || null;
  }

  /** Whether anything is filtered. */
  readonly filtered = computed(() => this.text.value !== "" || this.brush.value.size > 0);

  /** The rows with a result that pass, best first, those that break a bound last. */
  ranked(limit: number): number[] {
    const v = this.table.metrics.get(this.objective.value.metric);
    const mask = this.mask.value;
    if (!v) return [];
    const rows: number[] = [];
    const broken = new Set<number>();
    for (let i = 0; i < mask.length; i++) {
      if (!mask[i] || !isResult(this.table.state[i]) || Number.isNaN(v[i])) continue;
      rows.push(i);
      if (this.table.broken(i)) broken.add(i);
    }
    const sign = this.objective.value.maximize ? -1 : 1;
    rows.sort((a, b) => Number(broken.has(a)) - Number(broken.has(b)) || sign * (v[a] - v[b]) || a - b);
    return rows.slice(0, limit);
  }
}

/** The rule of Level in suggest/analysis: the largest resource that 8 points had, or else most. More than 8 are not counted. */
function compare(table: TrialTable, o: Objective) {
  const v = table.metrics.get(o.metric), points = new Map<number, Set<string>>(), side = new Int8Array(table.count);
  const own = table.params.get(table.length), given = (i: number) => own?.[i] || table.resource[i];
  const rows = Array.from(side.keys()).filter((i) => v && isResult(table.state[i]) && Number.isFinite(v[i]));
  const whole = rows.reduce((a, i) => Math.max(a, given(i)), 0), of = (i: number) => given(i) || whole;
  if (!whole) return { side, of, note: null };
  const columns = [...table.params.values()];
  for (const i of rows) {
    const known = points.get(of(i)) ?? new Set();
    if (known.size < 8) points.set(of(i), known.add(columns.map((c) => c[i]).join()));
  }
  let level = -1;
  for (const r of [...points.keys()].sort((a, b) => a - b)) if (points.get(r)!.size >= (points.get(level)?.size ?? 0)) level = r;
  for (let i = 0; i < side.length; i++) side[i] = Math.sign(of(i) - level);
  const left = rows.filter((i) => side[i]).length;
  return { side, of, note: left ? `of ${rows.length - left} trials with ${table.length || "resource"}=${level}; ${left} others` : null };
}

function ranks(table: TrialTable, o: Objective, side: Int8Array): Float64Array {
  const out = new Float64Array(table.count).fill(NaN), v = table.metrics.get(o.metric);
  if (!v) return out;
  const ranked = (i: number) => Number.isFinite(v[i]) && !side[i] && isSound(table.state[i]) && !table.broken(i);
  const finite = v.subarray(0, table.count).filter((_, i) => ranked(i)), last = finite.length - 1;
  // Typed arrays are sorted faster than rows are by a comparison.
  finite.sort();
  const at = new Map<number, number>();
  for (let k = 0; k <= last; k++) if (!at.has(finite[k])) at.set(finite[k], k);
  for (let i = 0; i < out.length; i++) {
    const k = at.get(v[i]);
    if (k !== undefined && ranked(i)) out[i] = last > 0 ? (o.maximize ? last - k : k) / last : 0;
  }
  return out;
}

const short = (v: number) => String(+v.toPrecision(6));

/** The numbers of an axis: words by their index. */
export function numbers(table: TrialTable, axis: string): ((i: number) => number) | undefined {
  const dot = axis.indexOf(".");
  const name = axis.slice(dot + 1);
  const column = axis.startsWith("params.") ? table.params.get(name) : axis.startsWith("metrics.") ? table.metrics.get(name) : undefined;
  if (column) return (i) => column[i];
  if (axis === "number") return (i) => table.number[i];
  if (axis === "duration") return (i) => table.duration(i);
  return undefined;
}

function readBrush(text: string): Brush {
  const out: Brush = new Map();
  for (const part of text.split("!").filter(Boolean)) {
    const [axis, lo, hi] = part.split("~");
    const range: [number, number] = [Number(lo), Number(hi)];
    if (axis && range.every((v) => !Number.isNaN(v))) out.set(decodeURIComponent(axis), range);
  }
  return out;
}
