// Trials as points on two axes: history, slice, rank and Pareto are this with other
// columns. Which points there are is found once a change; drawing only draws.
import { useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { go } from "../router";
import { boundText, formatValue, isResult, STATES } from "../data/trials";
import { numbers, type View } from "../data/view";
import { Plot, type Table } from "../plot/plot";
import { beyond, extent, scale, type Scale } from "../plot/scale";
import type { Theme } from "../plot/theme";
import { drawAxes, drawDrag, frame, gestures, inside, nearest, type Axes, type Drag, type Frame, type Zoom } from "../plot/xy";
import type { Size, Surface } from "../plot/surface";
import { zoomIn } from "./zoom";

export interface Points {
  rows: number[];
  x: number[];
  y: number[];
  axes: Axes;
  /** 0 is good, 1 is bad; else its number's colour. */
  color?: (k: number, t: Theme) => string;
  under?: (g: Surface, f: Frame, t: Theme) => void;
  over?: (g: Surface, f: Frame, t: Theme) => void;
  empty: string | null;
  note?: string | null;
}

export interface PointsProps {
  view: View;
  id: string;
  title: string;
  points: ReadonlySignal<Points>;
  label: (p: Points) => string;
  xAxis: string;
  yAxis: string;
  height?: number;
  wide?: boolean;
  controls?: ComponentChildren;
  jitter?: boolean;
  table?: () => Table;
}

export function PointPlot({ view, id, title, points, label, xAxis, yAxis, height, wide, controls, jitter, table }: PointsProps) {
  const drag = useSignal<Drag | null>(null), zoom = useMemo(() => zoomIn(id), [id]);
  const at = (size: Size) => frame(size, points.value.axes, zoom.value);
  const px = (p: Points, k: number, f: Frame) =>
    f.px(p.x[k]) + (jitter && f.x.words ? (((p.rows[k] * 7919) % 101) / 101 - 0.5) * Math.min(28, (f.width / f.x.words.length) * 0.5) : 0);
  const draw = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const p = points.value, f = at(size), mask = view.mask.value;
    drawAxes(g, f, p.axes, t);
    inside(g, f, () => {
      p.under?.(g, f, t);
      const radius = p.rows.length > 3000 ? 1.8 : p.rows.length > 400 ? 2.4 : 3.2;
      // Points of one colour are one path; many are squares, which are drawn faster.
      const groups = new Map<string, number[]>();
      for (let k = 0; k < p.rows.length; k++) {
        const row = p.rows[k], on = mask[row] === 1;
        const color = on ? (p.color?.(k, t) ?? t.states[view.table.state[row]]) : t.faint;
        const key = `${on ? 1 : 0}${isResult(view.table.state[row]) && !view.table.broken(row) ? 1 : 0}${color}`;
        const group = groups.get(key);
        if (group) group.push(k);
        else groups.set(key, [k]);
      }
      for (const key of [...groups.keys()].sort()) {
        const on = key[0] === "1", filled = key[1] === "1", r = on ? radius : radius * 0.8;
        g.globalAlpha = on ? 0.82 : 0.45;
        g.beginPath();
        for (const k of groups.get(key)!) {
          const x = px(p, k, f), y = f.py(p.y[k]);
          if (p.rows.length > 2000) g.rect(x - r, y - r, 2 * r, 2 * r);
          else {
            g.moveTo(x + r, y);
            g.arc(x, y, r, 0, 7);
          }
        }
        if (filled) {
          g.fillStyle = key.slice(2);
          g.fill();
        } else {
          g.strokeStyle = key.slice(2);
          g.lineWidth = 1.2;
          g.stroke();
        }
      }
      g.globalAlpha = 1;
      p.over?.(g, f, t);
    });
  }, [id, points, jitter]);
  const overlay = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const p = points.value, f = at(size), selected = view.selected.value, hover = view.hover.value;
    inside(g, f, () => {
      g.lineWidth = 2;
      for (let k = 0; k < p.rows.length; k++) {
        const row = p.rows[k];
        if (row !== hover && !selected.has(view.table.number[row])) continue;
        g.beginPath();
        g.arc(px(p, k, f), f.py(p.y[k]), 5.5, 0, 7);
        g.strokeStyle = row === hover ? t.text : t.accent;
        g.stroke();
      }
    });
    const k = p.rows.indexOf(hover);
    if (k >= 0) tip(g, size, t, px(p, k, f), f.py(p.y[k]), tipLines(view, hover, [[p.axes.xLabel ?? "", f.x.text(p.x[k])], [p.axes.yLabel ?? "", f.y.words ? f.y.text(p.y[k]) : formatValue(p.y[k])]]));
    drawDrag(g, drag.value, t);
  }, [id, points, jitter]);
  const pointer = useMemo(() => gestures({
    drag, zoom,
    frame: at,
    hover: (pos, f) => {
      const p = points.value, k = pos ? nearest(p.rows.length, (k) => px(p, k, f), (k) => f.py(p.y[k]), pos) : -1;
      view.hover.value = k < 0 ? -1 : p.rows[k];
    },
    click: (e) => pickRow(view, e),
    brush: (x, y) => {
      if (xAxis && numbers(view.table, xAxis)) view.setBrush(xAxis, x);
      if (yAxis && numbers(view.table, yAxis)) view.setBrush(yAxis, y);
    },
  }), [id, points, jitter, xAxis, yAxis]);
  const empty = useComputed(() => points.value.empty);
  return (
    <Plot id={id} title={title} height={height} wide={wide} label={() => label(points.value)} draw={draw} overlay={overlay} pointer={pointer}
      controls={<>{zoom.value && <button type="button" class="button small" onClick={() => (zoom.value = null)}>Reset zoom</button>}{controls}</>}
      empty={() => empty.value} note={() => [beyond(points.value.y, points.value.axes.y.domain), points.value.note].filter(Boolean).join("; ") || null} cursor="crosshair"
      table={table ?? (() => ({
        head: ["trial", "state", points.value.axes.xLabel ?? "x", points.value.axes.yLabel ?? "y"],
        rows: points.value.rows.filter((r) => view.mask.value[r]).map((r) => {
          const k = points.value.rows.indexOf(r), { x, y } = points.value.axes;
          return [view.table.number[r], STATES[view.table.state[r]], x.words ? x.text(points.value.x[k]) : points.value.x[k], y.words ? y.text(points.value.y[k]) : points.value.y[k]];
        }),
      }))} />
  );
}

export function pickRow(view: View, e: PointerEvent | MouseEvent) {
  const row = view.hover.peek();
  if (row < 0) return;
  const number = view.table.number[row];
  if (e.metaKey || e.ctrlKey || e.shiftKey) view.toggle(number);
  else go(view.trialPath(number));
}

export function tipLines(view: View, row: number, extra: [string, string][] = []): [string, string][] {
  const { table } = view, lines: [string, string][] = [[`#${table.number[row]}`, STATES[table.state[row]]]], broken = table.broken(row);
  if (broken) lines.push(["breaks", boundText(broken)]);
  if (table.divergence(row)) lines.push(["diverged", table.last[row]]);
  for (const l of extra) if (l[0] && l[0] !== "trial") lines.push(l);
  for (const o of table.objectives) {
    if (lines.some(([k]) => k === o.metric)) continue;
    lines.push([o.metric, formatValue(table.metrics.get(o.metric)![row])]);
  }
  for (const s of table.specs.slice(0, 8)) {
    if (!lines.some(([k]) => k === s.name)) lines.push([s.name, table.text(s, table.params.get(s.name)![row]) || "–"]);
  }
  if (table.specs.length > 8) lines.push(["…", `${table.specs.length - 8} more`]);
  return lines;
}

/** A box with lines of a name and a value beside a point. */
export function tip(g: Surface, size: Size, t: Theme, x: number, y: number, lines: [string, string][]) {
  g.font = `11.5px ${t.font}`;
  const cut = (s: string) => (s.length > 26 ? s.slice(0, 25) + "…" : s);
  const left = Math.max(...lines.map(([k]) => g.measureText(cut(k)).width)), right = Math.max(...lines.map(([, v]) => g.measureText(cut(v)).width));
  const w = left + right + 36, h = lines.length * 17 + 12;
  const bx = x + 14 + w > size.width ? Math.max(2, x - 14 - w) : x + 14, by = Math.max(2, Math.min(size.height - h - 2, y - h / 2));
  g.fillStyle = t.panel;
  g.strokeStyle = t.line;
  g.lineWidth = 1;
  g.globalAlpha = 0.97;
  g.beginPath();
  g.rect(bx + 0.5, by + 0.5, w, h);
  g.fill();
  g.globalAlpha = 1;
  g.stroke();
  g.textBaseline = "middle";
  lines.forEach(([k, v], i) => {
    const ly = by + 15 + i * 17;
    g.textAlign = "left";
    g.fillStyle = i === 0 ? t.text : t.muted;
    g.fillText(cut(k), bx + 10, ly);
    g.textAlign = "right";
    g.fillStyle = t.text;
    g.fillText(cut(v), bx + w - 10, ly);
  });
}

export function paramScale(view: View, name: string): Scale {
  const spec = view.table.specs.find((s) => s.name === name)!;
  if (spec.words) return scale([-0.5, spec.words.length - 0.5], { words: spec.words });
  const col = view.table.params.get(name)!;
  const { min = NaN, max = NaN } = spec;
  return scale(min < max ? [min, max] : (extent(col.subarray(0, view.table.count)) ?? [0, 1]), { log: spec.log });
}
export type { Zoom };
