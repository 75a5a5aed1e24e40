import { useComputed } from "@preact/signals";
import { boundText, formatValue, goodEnd, isResult } from "../data/trials";
import type { View } from "../data/view";
import { padded, robust, scale } from "../plot/scale";
import { PointPlot, type Points } from "./points";

/** All results in order, and the best so far. */
export function History({ view, height, ended }: { view: View; height?: number; ended: () => boolean }) {
  const points = useComputed<Points>(() => {
    const { table } = view, o = view.objective.value, { side } = view.compared.value;
    table.revision.value;
    const v = table.metrics.get(o.metric);
    const rows: number[] = [];
    for (let i = 0; v && i < table.count; i++) if (Number.isFinite(v[i])) rows.push(i);
    rows.sort((a, b) => table.number[a] - table.number[b]);
    const x = rows.map((r) => table.number[r]), y = rows.map((r) => v![r]);
    const best: [number, number][] = [];
    rows.forEach((r, k) => {
      if (!isResult(table.state[r]) || table.broken(r)) return;
      const last = best.at(-1)?.[1];
      if (last === undefined || (o.maximize ? y[k] > last : y[k] < last)) best.push([x[k], y[k]]);
    });
    const domain = padded(robust(table.sound(o.metric), goodEnd(o)) ?? [0, 1]), end = Math.max(1, table.count - 1);
    return {
      rows, x, y,
      color: (k, t) => (side[rows[k]] < 0 ? t.faint : t.states[table.state[rows[k]]]),
      axes: { x: scale([Math.min(0, ...x.slice(0, 1)), Math.max(end, x.at(-1) ?? 1)]), y: scale(domain), xLabel: "trial", yLabel: o.metric },
      over: (g, f, t) => {
        g.strokeStyle = t.accent;
        g.lineWidth = 2;
        g.beginPath();
        best.forEach(([bx, by], i) => {
          if (i) g.lineTo(f.px(bx), f.py(best[i - 1][1]));
          else g.moveTo(f.px(bx), f.py(by));
          g.lineTo(f.px(bx), f.py(by));
        });
        if (best.length) g.lineTo(f.left + f.width, f.py(best.at(-1)![1]));
        g.stroke();
        if (o.goal !== undefined) {
          g.setLineDash([5, 4]);
          g.strokeStyle = t.muted;
          g.lineWidth = 1;
          g.beginPath();
          g.moveTo(f.left, f.py(o.goal));
          g.lineTo(f.left + f.width, f.py(o.goal));
          g.stroke();
          g.setLineDash([]);
        }
      },
      empty: rows.length ? null : ended() ? "No trial had a result." : "No trial has a result. Each becomes a point here as soon as it reports one.",
      note: [
        best.length && `best ${formatValue(best.at(-1)![1])} at trial ${best.at(-1)![0]}`, rows.some((r) => side[r] < 0) && "grey: shorter trials",
        rows.some((r) => table.broken(r)) && `hollow: break ${table.bounds.map(boundText).join(" or ")}`,
      ].filter(Boolean).join("; ") || null,
    };
  });
  return (
    <PointPlot view={view} id="history" title="History" points={points} height={height} xAxis="number" yAxis={`metrics.${view.objective.value.metric}`}
      label={(p) => `${view.objective.value.metric} of ${p.rows.length} trials in their order; ${p.note ?? "no best yet"}.`} />
  );
}
