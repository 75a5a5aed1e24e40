// The curves of many trials: of the best, of those that run, of those selected.
import { effect, useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { heldCurves, lateCurves, watch } from "../api/live";
import { GetSeriesRequest_Axis, type Series } from "../api/gen/vernier/v1/dashboard_pb";
import { formatValue, isLive, State } from "../data/trials";
import type { View } from "../data/view";
import { nameOf, type Place } from "../data/experiment";
import { Plot } from "../plot/plot";
import { beyond, extent, padded, robust, scale } from "../plot/scale";
import type { Size, Surface } from "../plot/surface";
import { goodness, type Theme } from "../plot/theme";
import { drawAxes, drawDrag, frame, gestures, inside, type Drag } from "../plot/xy";
import { Segments, Select } from "../ui/ui";
import { pickRow, tip, tipLines } from "./points";
import { zoomIn } from "./zoom";

const most = 100;

type Axis = "step" | "time";

interface Props {
  view: View;
  place: Place;
  only?: number[];
  height?: number;
  id?: string;
  /** Metrics beside those of the table. */
  more?: string[];
  /** In place of metrics: what a trial uses of its machine, by time. */
  machine?: string[];
}

export function Curves({ view, place, only, height, id = "curves", more = [], machine }: Props) {
  const series = useSignal<Series[] | null>(null), asked = useSignal<Axis | null>(machine ? "time" : null), few = useSignal(false), logY = useSignal(false), failed = useSignal("");
  const metric = useSignal(machine?.[0] ?? view.objective.peek().metric);
  const axis = useComputed<Axis>(() => asked.value ?? (few.value ? "time" : "step"));
  const drag = useSignal<Drag | null>(null), zoom = useMemo(() => zoomIn(id), [id]);
  const at = useSignal<{ x: number; y: number } | null>(null);

  // The wanted trials change slowly, so that the stream is not begun anew with each result.
  const wanted = useSignal("");
  useEffect(() => {
    let timer = 0, first = true;
    const choose = () => {
      timer = 0;
      wanted.value = (only ?? pick(view)).join(",");
    };
    const stop = effect(() => {
      view.mask.value;
      view.selected.value;
      if (first && view.table.count) {
        first = false;
        choose();
      } else if (!timer) timer = setTimeout(choose, 1500) as unknown as number;
    });
    return () => (clearTimeout(timer), stop());
  }, [view, only?.join(",")]);
  useEffect(() => effect(() => {
    const trials = wanted.value.split(",").filter(Boolean).map(Number);
    if (!trials.length) {
      series.value = [];
      return;
    }
    return watch({
      case: "series",
      value: { parent: nameOf(place), trials, metrics: [metric.value], maxPoints: trials.length > 3 ? 150 : 600, axis: axis.value === "time" ? GetSeriesRequest_Axis.TIME : GetSeriesRequest_Axis.STEP },
    }, (c) => {
      if (c.case === "end") failed.value = c.value.message;
      if (c.case !== "series") return;
      const fresh = new Map(c.value.series.map((s) => [s.trial, s]));
      series.value = [...(series.peek() ?? []).filter((s) => !fresh.has(s.trial) && s.metric === metric.value && trials.includes(s.trial)), ...c.value.series];
      if (axis.peek() === "step" && !heldCurves()) few.value = fewSteps(series.value);
    });
  }), [view]);

  const axes = useComputed(() => {
    const all = series.value ?? [], ys: number[] = [];
    for (const s of all) for (const v of s.value) ys.push(v);
    const xs = extent(all.flatMap((s) => [s.x[0], s.x.at(-1)!])) ?? [0, 1], whole = extent(ys) ?? [0, 1];
    const log = logY.value && whole[0] > 0, y = log ? whole : ((ys.length < 8 ? whole : robust(ys)) ?? whole); // a logarithm has room for all
    if (machine) {
      const percent = metric.value.endsWith("_percent");
      return {
        x: scale(xs, { time: true }), y: scale(percent ? [0, 100] : [0, Math.max(y[1] * 1.08, 1e-3)]),
        xLabel: "time since the start", yLabel: usageTitle(metric.value),
      };
    }
    return {
      x: scale(xs, { time: axis.value === "time" }), y: scale(padded(y, log), { log }),
      xLabel: axis.value === "time" ? "time since the first point" : "step", yLabel: metric.value,
    };
  });
  const cut = useComputed(() => beyond((series.value ?? []).flatMap((s) => s.value), axes.value.y.domain));
  const shown = useComputed(() => {
    const mask = view.mask.value;
    return (series.value ?? []).filter((s) => only || mask[view.table.row(s.trial)] || view.selected.value.has(s.trial));
  });
  // How good each is among those that are shown.
  const rank = useComputed(() => {
    const all = view.rank.value, out = new Map<number, number>();
    const rows = shown.value.map((s) => view.table.row(s.trial)).filter((r) => !Number.isNaN(all[r])).sort((a, b) => all[a] - all[b]);
    rows.forEach((r, k) => out.set(r, rows.length > 1 ? k / (rows.length - 1) : 0));
    return out;
  });
  const color = (s: Series, t: Theme) => {
    if (only && only.length > 1) return t.series[only.indexOf(s.trial) % t.series.length];
    if (only) return t.accent;
    const r = rank.value.get(view.table.row(s.trial));
    return r === undefined ? t.muted : goodness(r, t);
  };
  const place2 = (size: Size) => frame(size, axes.value, zoom.value);
  const path = (g: Surface, s: Series, f: ReturnType<typeof place2>) => {
    g.beginPath();
    let pen = false;
    for (let k = 0; k < s.x.length; k++) {
      if (!Number.isFinite(s.value[k])) {
        pen = false;
        continue;
      }
      const x = f.px(s.x[k]), y = f.py(s.value[k]);
      if (pen) g.lineTo(x, y);
      else g.moveTo(x, y);
      pen = true;
    }
    g.stroke();
  };
  const draw = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const f = place2(size), list = shown.value, many = list.length > 12;
    drawAxes(g, f, axes.value, t);
    inside(g, f, () => {
      const order = [...list].sort((a, b) => (rank.value.get(view.table.row(b.trial)) ?? 1) - (rank.value.get(view.table.row(a.trial)) ?? 1));
      for (const s of order) {
        if (s.min.length && (only || !many)) {
          g.globalAlpha = 0.14;
          g.fillStyle = color(s, t);
          g.beginPath();
          s.x.forEach((x, k) => g.lineTo(f.px(x), f.py(s.max[k])));
          for (let k = s.x.length - 1; k >= 0; k--) g.lineTo(f.px(s.x[k]), f.py(s.min[k]));
          g.fill();
        }
        g.globalAlpha = many ? 0.6 : 1;
        g.lineWidth = many ? 1 : 1.8;
        g.strokeStyle = color(s, t);
        path(g, s, f);
        const row = view.table.row(s.trial), end = s.x.length - 1;
        if (end < 0) continue;
        g.globalAlpha = 1;
        const state = view.table.state[row];
        if (isLive(state) || end === 0) {
          g.fillStyle = color(s, t);
          g.beginPath();
          g.arc(f.px(s.x[end]), f.py(s.value[end]), 2.8, 0, 7);
          g.fill();
        } else if (state === State.pruned && list.length <= 60) {
          const x = f.px(s.x[end]), y = f.py(s.value[end]);
          g.strokeStyle = t.states[State.pruned];
          g.lineWidth = 1.4;
          g.beginPath();
          g.moveTo(x, y - 4);
          g.lineTo(x, y + 4);
          g.stroke();
        }
      }
      g.globalAlpha = 1;
    });
  }, [view, only?.join(",")]);
  const overlay = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const f = place2(size), hover = view.hover.value, selected = view.selected.value;
    inside(g, f, () => {
      for (const s of shown.value) {
        const row = view.table.row(s.trial);
        if (row !== hover && (only || !selected.has(s.trial))) continue;
        g.lineWidth = 2.6;
        g.strokeStyle = row === hover ? t.text : t.accent;
        path(g, s, f);
      }
    });
    const s = shown.value.find((s) => view.table.row(s.trial) === hover);
    if (s && at.value) {
      const k = nearestX(s, f.x.invert((at.value.x - f.left) / f.width));
      tip(g, size, t, f.px(s.x[k]), f.py(s.value[k]), [...tipLines(view, hover, [[axis.value, f.x.text(s.x[k])], [`${s.metric} here`, formatValue(s.value[k])]]).slice(0, 8)]);
    }
    drawDrag(g, drag.value, t);
  }, [view, only?.join(",")]);
  const pointer = useMemo(() => gestures({
    drag, zoom,
    frame: place2,
    hover: (p, f) => {
      at.value = p;
      let best = -1, least = 18;
      for (const s of p ? shown.value : []) {
        const want = f.x.invert((p!.x - f.left) / f.width);
        if (want < s.x[0] - 1e-9 || want > s.x.at(-1)! * 1.02) continue;
        const k = nearestX(s, want), d = Math.abs(f.py(s.value[k]) - p!.y);
        if (d < least) [best, least] = [view.table.row(s.trial), d];
      }
      view.hover.value = best;
    },
    click: (e) => pickRow(view, e),
  }), [view, only?.join(",")]);
  view.table.revision.value; // metrics may be new
  const title = machine ? usageTitle : (name: string) => name;
  const names = machine ?? [...new Set([...view.table.metrics.keys(), ...more])];
  return (
    <Plot id={id} title={machine ? "Use of the machine" : only ? "Curves" : "Learning curves"} height={height} draw={draw} overlay={overlay} pointer={pointer} cursor="crosshair"
      label={() => `${metric.value} by ${axis.value} of ${shown.value.length} trials.`}
      note={() => [cut.value, !only && heldCurves() ? `${heldCurves()!.size} of ${view.table.count.toLocaleString("en")} are in this file${lateCurves() ? `; ${lateCurves()} took too long to read` : ""}` : !only && view.shown.value > most ? `best ${Math.min(most, shown.value.length)} of ${view.shown.value.toLocaleString("en")}` : null].filter(Boolean).join("; ") || null}
      empty={() => failed.value || (series.value === null ? "Reading curves…" : shown.value.every((s) => s.x.length === 0) ? heldCurves() ? "This file has no curve of it." : `No points of ${metric.value || "the objective"} yet.` : null)}
      controls={<>
        {zoom.value && <button type="button" class="button small" onClick={() => (zoom.value = null)}>Reset zoom</button>}
        {names.length > 1 && <Select label="Metric" value={title(metric.value)} options={names.map(title)} set={(v) => { zoom.value = null; few.value = false; metric.value = names.find((n) => title(n) === v)!; }} />}
        {!machine && <Segments label="Horizontal axis" value={axis.value} options={[["step", "Step"], ["time", "Time"]]} set={(v) => { zoom.value = null; asked.value = v; }} />}
        {!machine && <Segments label="Vertical axis" value={logY.value ? "log" : "linear"} options={[["linear", "Lin"], ["log", "Log"]]} set={(v) => { zoom.value = null; logY.value = v === "log"; }} />}
      </>}
      table={() => ({ head: ["trial", axis.value, metric.value], rows: shown.value.flatMap((s) => s.x.map((x, k) => [s.trial, x, s.value[k]])) })} />
  );
}

// As collector/system.go names them.
const usagePattern = /^system\/(?:gpu(\d+)\.(utilization_percent|memory_gib)|(cpu_cores|memory_gib))$/;
export const isUsage = (metric: string) => usagePattern.test(metric);

/** What a metric of a machine's use is, for people. */
function usageTitle(metric: string): string {
  const [, gpu, ofGPU, other] = usagePattern.exec(metric) ?? [];
  if (gpu) return `GPU ${gpu}, ${ofGPU === "memory_gib" ? "memory in GiB" : "use in %"}`;
  return other === "cpu_cores" ? "CPU cores" : other ? "memory in GiB" : metric;
}

function pick(view: View): number[] {
  const { table } = view, mask = view.mask.peek(), held = heldCurves();
  const out = new Set<number>(view.selected.peek());
  for (let i = table.count - 1, n = 0; i >= 0 && n < most / 2; i--) {
    if (table.state[i] === State.running && mask[i]) {
      out.add(table.number[i]);
      n++;
    }
  }
  for (const i of view.ranked(held ? table.count : most)) {
    if (out.size >= most) break;
    if (!held || held.has(table.number[i])) out.add(table.number[i]);
  }
  return [...out].sort((a, b) => a - b);
}

/**
 * Whether steps hide how trials went on: they are one to three, of many values. So it is with
 * a fine-tuning of one epoch whose log states epochs.
 */
export function fewSteps(series: { x: number[]; points: bigint }[]): boolean {
  return series.length > 0 && series.every((s) => s.x.length <= 3) && series.some((s) => Number(s.points) >= Math.max(8, 4 * s.x.length));
}

function nearestX(s: Series, x: number): number {
  let lo = 0, hi = s.x.length - 1;
  while (hi - lo > 1) {
    const mid = (lo + hi) >> 1;
    if (s.x[mid] < x) lo = mid;
    else hi = mid;
  }
  return x - s.x[lo] < s.x[hi] - x ? lo : hi;
}
