// Plots with two axes: the frame, the ticks, zoom, and what is nearest to the pointer.
import type { Signal } from "@preact/signals";
import { scale, type Scale } from "./scale";
import type { Size, Surface } from "./surface";
import type { Theme } from "./theme";

export interface Zoom {
  x: [number, number];
  y: [number, number];
}

export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  x: Scale;
  y: Scale;
  px(v: number): number;
  py(v: number): number;
}

export interface Axes {
  x: Scale;
  y: Scale;
  xLabel?: string;
  yLabel?: string;
}

const margin = { left: 58, right: 14, top: 12, bottom: 38 };

/** Places two scales on a plot; a zoom replaces their domains. */
export function frame(size: Size, a: Axes, zoom?: Zoom | null): Frame {
  const x = zoom && !a.x.words ? scale(zoom.x, { log: a.x.log, time: a.x.time, format: a.x.text }) : a.x;
  const y = zoom && !a.y.words ? scale(zoom.y, { log: a.y.log, time: a.y.time, format: a.y.text }) : a.y;
  // 11px letters are about 6.5 wide; before them is the label of the axis.
  const texts = y.words ?? y.ticks(6).map(y.text);
  const longest = Math.min(124, 34 + 6.5 * Math.max(0, ...texts.map((w) => w.length)));
  const left = Math.max(margin.left, longest), top = margin.top;
  const width = Math.max(10, size.width - left - margin.right), height = Math.max(10, size.height - top - margin.bottom);
  return {
    left, top, width, height, x, y,
    px: (v) => left + x.at(v) * width,
    py: (v) => top + (1 - y.at(v)) * height,
  };
}

export function drawAxes(g: Surface, f: Frame, a: Axes, t: Theme) {
  g.font = `11px ${t.font}`;
  g.lineWidth = 1;
  g.strokeStyle = t.grid;
  g.fillStyle = t.muted;
  g.textAlign = "right";
  g.textBaseline = "middle";
  g.beginPath();
  for (const v of f.y.ticks(Math.max(2, Math.floor(f.height / 48)))) {
    const y = Math.round(f.py(v)) + 0.5;
    if (y < f.top - 1 || y > f.top + f.height + 1) continue;
    g.moveTo(f.left, y);
    g.lineTo(f.left + f.width, y);
    g.fillText(clip(g, f.y.text(v), f.left - 30), f.left - 8, y);
  }
  g.stroke();
  g.textAlign = "center";
  g.textBaseline = "top";
  let free = -Infinity;
  for (const v of f.x.ticks(Math.max(2, Math.floor(f.width / 80)))) {
    const x = f.px(v);
    if (x < f.left - 1 || x > f.left + f.width + 1) continue;
    const text = clip(g, f.x.text(v), f.x.words ? f.width / f.x.words.length - 6 : 90), half = g.measureText(text).width / 2;
    if (x - half < free) continue;
    g.fillText(text, Math.min(x, f.left + f.width + margin.right - half - 1), f.top + f.height + 7);
    free = x + half + 10;
  }
  g.strokeStyle = t.line;
  g.beginPath();
  g.moveTo(f.left, f.top + f.height + 0.5);
  g.lineTo(f.left + f.width, f.top + f.height + 0.5);
  g.stroke();
  if (a.xLabel) g.fillText(clip(g, a.xLabel, f.width), f.left + f.width / 2, f.top + f.height + 23);
  if (a.yLabel) {
    g.save();
    g.translate(12, f.top + f.height / 2);
    g.rotate(-Math.PI / 2);
    g.textBaseline = "middle";
    g.fillText(clip(g, a.yLabel, f.height), 0, 0);
    g.restore();
  }
}

/** Shortens a text to a width. */
export function clip(g: Surface, text: string, width: number): string {
  if (g.measureText(text).width <= width) return text;
  while (text.length > 1 && g.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}

export function inside(g: Surface, f: Frame, draw: () => void) {
  g.save();
  g.beginPath();
  g.rect(f.left - 1, f.top - 6, f.width + 8, f.height + 7);
  g.clip();
  draw();
  g.restore();
}

export interface Drag {
  from: { x: number; y: number };
  to: { x: number; y: number };
  brush: boolean;
}

/** The rectangle that is being drawn with the pointer. */
export function drawDrag(g: Surface, d: Drag | null, t: Theme) {
  if (!d) return;
  const x = Math.min(d.from.x, d.to.x), y = Math.min(d.from.y, d.to.y), w = Math.abs(d.to.x - d.from.x), h = Math.abs(d.to.y - d.from.y);
  g.globalAlpha = 0.12;
  g.fillStyle = t.accent;
  g.fillRect(x, y, w, h);
  g.globalAlpha = 1;
  g.strokeStyle = t.accent;
  g.setLineDash(d.brush ? [4, 3] : []);
  g.strokeRect(x + 0.5, y + 0.5, w, h);
  g.setLineDash([]);
}

export interface Gestures {
  drag: Signal<Drag | null>;
  zoom?: Signal<Zoom | null>;
  frame: (size: Size) => Frame | null;
  hover: (at: { x: number; y: number } | null, f: Frame) => void;
  click: (e: PointerEvent) => void;
  /** Shift and drag: a filter of what is inside. */
  brush?: (x: [number, number], y: [number, number]) => void;
}

/** Drag zooms, Shift and drag filters, a double click shows all again. */
export function gestures(o: Gestures) {
  return (e: PointerEvent, at: { x: number; y: number }, size: Size) => {
    const f = o.frame(size);
    if (!f) return;
    const d = o.drag.peek();
    switch (e.type) {
      case "pointerdown":
        if (e.button !== 0) return;
        (e.currentTarget as Element).setPointerCapture(e.pointerId);
        o.drag.value = { from: at, to: at, brush: (e.shiftKey || !o.zoom) && !!o.brush };
        break;
      case "pointermove":
        if (d) o.drag.value = { ...d, to: at };
        else o.hover(at, f);
        break;
      case "pointerup": {
        o.drag.value = null;
        if (!d) return;
        if (Math.abs(d.to.x - d.from.x) < 5 && Math.abs(d.to.y - d.from.y) < 5) return o.click(e);
        const fx = (x: number) => f.x.invert(Math.min(1, Math.max(0, (x - f.left) / f.width)));
        const fy = (y: number) => f.y.invert(Math.min(1, Math.max(0, 1 - (y - f.top) / f.height)));
        const x = [fx(d.from.x), fx(d.to.x)].sort((a, b) => a - b) as [number, number];
        const y = [fy(d.from.y), fy(d.to.y)].sort((a, b) => a - b) as [number, number];
        if (d.brush) o.brush?.(x, y);
        else if (o.zoom) o.zoom.value = { x, y };
        break;
      }
      case "pointercancel":
        o.drag.value = null;
        break;
      case "pointerleave":
        if (!d) o.hover(null, f);
        break;
      case "dblclick":
        if (o.zoom) o.zoom.value = null;
        break;
    }
  };
}

/** The index of the nearest point within a reach, or -1. */
export function nearest(count: number, x: (k: number) => number, y: (k: number) => number, at: { x: number; y: number }, reach = 24): number {
  let best = -1, least = reach * reach;
  for (let k = 0; k < count; k++) {
    const dx = x(k) - at.x, dy = y(k) - at.y, d = dx * dx + dy * dy;
    if (d < least) [best, least] = [k, d];
  }
  return best;
}
