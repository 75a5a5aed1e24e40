import { useComputed, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { clock, formatDuration, isLive, STATES } from "../data/trials";
import type { View } from "../data/view";
import { Plot } from "../plot/plot";
import { scale } from "../plot/scale";
import type { Size, Surface } from "../plot/surface";
import type { Theme } from "../plot/theme";
import { drawAxes, drawDrag, frame, gestures, inside, type Drag } from "../plot/xy";
import { pickRow, tip, tipLines } from "./points";
import { zoomIn } from "./zoom";

/** When each trial ran, in as few lanes as there were trials at once. */
export function Timeline({ view }: { view: View }) {
  const { table } = view;
  const drag = useSignal<Drag | null>(null), zoom = useMemo(() => zoomIn("timeline"), []), at = useSignal<{ x: number; y: number } | null>(null);
  const bars = useComputed(() => {
    table.revision.value;
    const now = clock.now() / 1000, rows: number[] = [];
    for (let i = 0; i < table.count; i++) if (!Number.isNaN(table.started[i])) rows.push(i);
    rows.sort((a, b) => table.started[a] - table.started[b]);
    const begun = rows.length ? table.started[rows[0]] : now, free: number[] = [], lane = new Int32Array(table.count);
    let end = begun + 1;
    const ends = new Float64Array(table.count);
    for (const r of rows) {
      const e = (ends[r] = Number.isNaN(table.ended[r]) ? (isLive(table.state[r]) ? now : table.started[r]) : table.ended[r]);
      end = Math.max(end, e);
      // At most 400 lanes are looked through: more are not to be told apart.
      let k = 0;
      while (k < free.length && k < 400 && free[k] > table.started[r] + 1e-3) k++;
      free[k] = e;
      lane[r] = k;
    }
    return { rows, lane, ends, begun, lanes: Math.max(1, free.length), axes: { x: scale([0, end - begun], { time: true }), y: scale([0, Math.max(1, free.length)], { format: (v) => (Number.isInteger(v) ? String(v) : "") }), xLabel: "time since the first trial", yLabel: "at once" } };
  });
  const place = (size: Size) => frame(size, bars.value.axes, zoom.value);
  const draw = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const b = bars.value, f = place(size), mask = view.mask.value;
    drawAxes(g, f, b.axes, t);
    inside(g, f, () => {
      for (const on of [0, 1]) {
        for (const r of b.rows) {
          if ((mask[r] ?? 0) !== on) continue;
          const x0 = f.px(table.started[r] - b.begun), x1 = f.px(b.ends[r] - b.begun), y1 = f.py(b.lane[r]), y0 = f.py(b.lane[r] + 1);
          if (x1 < f.left || x0 > f.left + f.width) continue;
          g.globalAlpha = on ? 0.85 : 0.3;
          g.fillStyle = on ? t.states[table.state[r]] : t.faint;
          const gap = Math.min(1.5, (y1 - y0) * 0.15);
          g.fillRect(x0, y0 + gap, Math.max(1, x1 - x0 - 0.6), Math.max(0.7, y1 - y0 - 2 * gap));
        }
      }
      g.globalAlpha = 1;
    });
  }, []);
  const overlay = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const b = bars.value, f = place(size), r = view.hover.value;
    drawDrag(g, drag.value, t);
    if (r < 0 || Number.isNaN(table.started[r] ?? NaN)) return;
    const x0 = f.px(table.started[r] - b.begun), x1 = f.px(b.ends[r] - b.begun), y0 = f.py(b.lane[r] + 1), y1 = f.py(b.lane[r]);
    inside(g, f, () => {
      g.strokeStyle = t.text;
      g.lineWidth = 1.5;
      g.strokeRect(x0, y0, Math.max(2, x1 - x0), y1 - y0);
    });
    if (at.value) tip(g, size, t, at.value.x, at.value.y, tipLines(view, r, [["took", formatDuration(table.duration(r))]]).slice(0, 4));
  }, []);
  const pointer = useMemo(() => gestures({
    drag, zoom, frame: place,
    hover: (p, f) => {
      at.value = p;
      let found = -1;
      if (p) {
        const b = bars.value, x = f.x.invert((p.x - f.left) / f.width) + b.begun, lane = Math.floor(f.y.invert(1 - (p.y - f.top) / f.height));
        for (const r of b.rows) if (b.lane[r] === lane && table.started[r] <= x && b.ends[r] >= x) found = r;
      }
      view.hover.value = found;
    },
    click: (e) => pickRow(view, e),
  }), []);
  return (
    <Plot wide id="timeline" title="Timeline" height={260} draw={draw} overlay={overlay} pointer={pointer} cursor="crosshair"
      label={() => `When ${bars.value.rows.length} trials ran, at most ${bars.value.lanes} at once.`}
      empty={() => (bars.value.rows.length ? null : "No trial has started yet.")}
      controls={zoom.value && <button type="button" class="button small" onClick={() => (zoom.value = null)}>Reset zoom</button>}
      table={() => ({ head: ["trial", "state", "started", "seconds"], rows: bars.value.rows.filter((r) => view.mask.value[r]).map((r) => [table.number[r], STATES[table.state[r]], new Date(table.started[r] * 1000).toISOString(), +(bars.value.ends[r] - table.started[r]).toFixed(2)]) })} />
  );
}
