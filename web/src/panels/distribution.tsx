import { useComputed, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { formatValue, isResult } from "../data/trials";
import type { View } from "../data/view";
import { Plot } from "../plot/plot";
import { padded, robust, scale } from "../plot/scale";
import type { Size, Surface } from "../plot/surface";
import type { Theme } from "../plot/theme";
import { drawAxes, drawDrag, frame, gestures, inside, type Drag } from "../plot/xy";
import { tip } from "./points";
import { zoomIn } from "./zoom";

/** The part of the results that are at least as good as a value; of the filtered ones beside all. */
export function Distribution({ view }: { view: View }) {
  const drag = useSignal<Drag | null>(null), zoom = useMemo(() => zoomIn("edf"), []), at = useSignal<number | null>(null);
  const curves = useComputed(() => {
    const { table } = view, o = view.objective.value, v = table.metrics.get(o.metric), mask = view.mask.value;
    table.revision.value;
    const all: number[] = [], some: number[] = [];
    for (let i = 0; v && i < table.count; i++) {
      if (!isResult(table.state[i]) || !Number.isFinite(v[i]) || view.compared.value.side[i]) continue;
      all.push(v[i]);
      if (mask[i]) some.push(v[i]);
    }
    const sort = (x: number[]) => x.sort((a, b) => (o.maximize ? b - a : a - b));
    const x = scale(padded(robust(all) ?? [0, 1]));
    return { all: sort(all), some: sort(some), axes: { x, y: scale([0, 1], { format: (f) => `${Math.round(f * 100)} %` }), xLabel: o.metric, yLabel: "at least as good" } };
  });
  const part = (list: number[], x: number) => {
    const sign = view.objective.value.maximize ? -1 : 1;
    let lo = 0, hi = list.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (sign * list[mid] <= sign * x) lo = mid + 1;
      else hi = mid;
    }
    return list.length ? lo / list.length : 0;
  };
  const place = (size: Size) => frame(size, curves.value.axes, zoom.value);
  const draw = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const c = curves.value, f = place(size);
    drawAxes(g, f, c.axes, t);
    const line = (list: number[], color: string, width: number) => {
      g.strokeStyle = color;
      g.lineWidth = width;
      g.beginPath();
      for (let px = 0; px <= f.width; px += 1) {
        const y = f.py(part(list, f.x.invert(px / f.width)));
        if (px) g.lineTo(f.left + px, y);
        else g.moveTo(f.left, y);
      }
      g.stroke();
    };
    inside(g, f, () => {
      if (c.some.length !== c.all.length) line(c.all, t.faint, 2);
      line(c.some, t.accent, 2);
    });
  }, []);
  const overlay = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const f = place(size), c = curves.value;
    drawDrag(g, drag.value, t);
    if (at.value === null || !c.some.length) return;
    const x = f.x.invert((at.value - f.left) / f.width), y = part(c.some, x);
    if (at.value < f.left || at.value > f.left + f.width) return;
    tip(g, size, t, at.value, f.py(y), [[view.objective.value.metric, formatValue(x)], ["of the results", `${(y * 100).toFixed(1)} %`]]);
  }, []);
  const pointer = useMemo(() => gestures({ drag, zoom, frame: place, hover: (p) => (at.value = p?.x ?? null), click: () => {}, brush: (x) => view.setBrush(`metrics.${view.objective.value.metric}`, x) }), []);
  return (
    <Plot id="edf" title="Distribution" height={320} draw={draw} overlay={overlay} pointer={pointer} cursor="crosshair"
      label={() => `The part of ${curves.value.some.length} results that are at least as good as a value; half reach ${formatValue(curves.value.some[Math.floor(curves.value.some.length / 2)] ?? NaN)}.`}
      note={() => view.noted(curves.value.some.length !== curves.value.all.length ? "filtered, and all in grey" : null)}
      empty={() => (curves.value.all.length ? null : "No trial has a result yet.")}
      controls={zoom.value && <button type="button" class="button small" onClick={() => (zoom.value = null)}>Reset zoom</button>}
      table={() => ({ head: [view.objective.value.metric, "part"], rows: curves.value.some.map((v, i) => [v, (i + 1) / curves.value.some.length]) })} />
  );
}
