// Scales: from values to pixels and back, and the ticks between.
import { formatDuration, formatValue } from "../data/trials";

export interface Scale {
  domain: [number, number];
  log: boolean;
  /** Of seconds, as durations. */
  time: boolean;
  words?: string[];
  /** 0 to 1 */
  at(v: number): number;
  invert(f: number): number;
  ticks(count: number): number[];
  text(v: number): string;
}

export function scale(domain: [number, number], options: { log?: boolean; time?: boolean; words?: string[]; format?: (v: number) => string } = {}): Scale {
  let [a, b] = domain;
  const log = !!options.log && a > 0;
  if (!(a < b)) [a, b] = log ? [a / 2, a * 2] : [a - (Math.abs(a) * 0.05 || 0.5), a + (Math.abs(a) * 0.05 || 0.5)];
  const f = log ? Math.log : (v: number) => v;
  const g = log ? Math.exp : (v: number) => v;
  const lo = f(a), span = f(b) - lo;
  const { words, time = false } = options;
  const format = options.format ?? (time ? formatDuration : tickText);
  return {
    domain: [a, b],
    log,
    time,
    words,
    at: (v) => (f(v) - lo) / span,
    invert: (x) => g(lo + x * span),
    ticks: (count) => (words ? spread(words.length, count, a, b) : log ? logTicks(a, b, count) : time ? timeTicks(a, b, count) : linearTicks(a, b, count)),
    text: (v) => (words ? (words[Math.round(v)] ?? "") : format(v)),
  };
}

const tickText = (v: number) => (Math.abs(v) >= 1e4 && Math.abs(v) < 1e6 ? `${+(v / 1e3).toPrecision(4)}k` : formatValue(+v.toPrecision(10)));

function spread(n: number, count: number, a: number, b: number): number[] {
  const step = Math.max(1, Math.ceil(n / Math.max(2, count)));
  return Array.from({ length: Math.ceil(n / step) }, (_, i) => i * step).filter((v) => v >= a && v <= b);
}

export const linearTicks = (a: number, b: number, count: number): number[] => every(linearStep(a, b, count), a, b);

function linearStep(a: number, b: number, count: number): number {
  const raw = (b - a) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) ?? power * 10;
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];

/** Seconds, no finer than formatDuration tells apart. One in the middle where there is no multiple of that. */
export function timeTicks(a: number, b: number, count: number): number[] {
  const ticks = multiples(a, b, count);
  return ticks.length > 0 ? ticks : [(a + b) / 2];
}

function multiples(a: number, b: number, count: number): number[] {
  if (b < 10) return every(Math.max(linearStep(a, b, count), b < 1 ? 0.001 : 0.1), a, b);
  const finest = b < 3600 ? 1 : b < 86400 ? 60 : 3600;
  const raw = Math.max((b - a) / Math.max(1, count), finest);
  return every(steps.find((s) => s >= raw * 0.999) ?? 86400 * Math.ceil(raw / 86400), a, b);
}

// They are counted: where the numbers from a to b lie close together, the next multiple may be the same one.
function every(step: number, a: number, b: number): number[] {
  const first = Math.ceil(a / step - 1e-9), count = Math.floor(b / step + 1e-9) - first;
  const out = new Set<number>();
  for (let k = 0; k <= Math.min(count, 1000); k++) out.add(+((first + k) * step).toPrecision(12));
  return [...out].filter(Number.isFinite);
}

export function logTicks(a: number, b: number, count: number): number[] {
  const from = Math.ceil(Math.log10(a) - 1e-9), to = Math.floor(Math.log10(b) + 1e-9);
  const decades = to - from + 1;
  if (decades < 2) {
    const fine: number[] = [];
    for (let e = from - 1; e <= to; e++) for (const m of [1, 2, 5]) fine.push(m * 10 ** e);
    const inside = fine.map((v) => +v.toPrecision(6)).filter((v) => v >= a * 0.999 && v <= b * 1.001);
    return inside.length >= 2 ? inside : linearTicks(a, b, count);
  }
  const step = Math.ceil(decades / Math.max(2, count));
  return Array.from({ length: Math.ceil(decades / step) }, (_, i) => +(10 ** (from + i * step)).toPrecision(6));
}

/** The least and the greatest of what is finite. */
export function extent(values: Iterable<number>): [number, number] | null {
  let lo = Infinity, hi = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v)) continue;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  return lo <= hi ? [lo, hi] : null;
}

/** A domain with a little air on both sides. */
export function padded([a, b]: [number, number], log = false, by = 0.04): [number, number] {
  if (log && a > 0) {
    const k = (b / a) ** by;
    return a === b ? [a / 1.5, b * 1.5] : [a / k, b * k];
  }
  const d = (b - a) * by || Math.abs(a) * 0.05 || 0.5;
  return [a - d, b + d];
}

/**
 * The extent of values without the far outliers that would flatten all others: of
 * diverged trials, for example. Far is five times the middle 80 % beyond it; of fewer
 * than 8 values at least five times the middle one, too. The end that is good is never cut.
 */
export function robust(values: number[], good: "low" | "high" | "" = ""): [number, number] | null {
  const v = values.filter(Number.isFinite).sort((a, b) => a - b), last = v.length - 1;
  if (last < 3) return extent(v);
  const low = v[Math.ceil(last * 0.1)], high = v[Math.floor(last * 0.9)];
  const reach = Math.max(high - low || Math.abs(high) || 1, last < 7 ? Math.abs(v[last >> 1]) : 0) * 5;
  let i = 0, j = last;
  while (good !== "low" && v[i] < low - reach) i++;
  while (good !== "high" && v[j] > high + reach) j--;
  return [v[i], v[j]];
}

/** Says how many values a plot is too small for, null for none. */
export function beyond(values: number[], [lo, hi]: [number, number]): string | null {
  const n = values.filter((v) => v < lo || v > hi).length;
  return n ? `${n.toLocaleString("en")} beyond the scale` : null;
}
