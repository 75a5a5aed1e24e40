import { useComputed, useSignal } from "@preact/signals";
import type { Model } from "../data/experiment";
import { formatValue, isResult } from "../data/trials";
import type { View } from "../data/view";
import { padded, robust, scale } from "../plot/scale";
import { Select } from "../ui/ui";
import { useAnswer } from "./ask";
import { PointPlot, type Points } from "./points";

/** Two metrics against each other, and the trials that no other beats in both. */
export function Pareto({ model, view }: { model: Model; view: View }) {
  const { table } = view, objectives = table.objectives;
  const names = useComputed(() => (table.revision.value, [...table.metrics.keys()]));
  const x = useSignal(objectives[0]?.metric ?? ""), y = useSignal(objectives[1]?.metric ?? names.value.find((n) => n !== x.value) ?? "");
  const maximize = (m: string) => objectives.find((o) => o.metric === m)?.maximize ?? /acc|auc|f1|score|reward|precision|recall/i.test(m);
  const asked = useAnswer(model, view, { case: "pareto", value: { $typeName: "vernier.v1.AnalyzeRequest.Pareto", reference: [] } });
  const points = useComputed<Points>(() => {
    table.revision.value;
    const a = table.metrics.get(x.value), b = table.metrics.get(y.value), rows: number[] = [];
    for (let i = 0; a && b && i < table.count; i++) if (isResult(table.state[i]) && Number.isFinite(a[i]) && Number.isFinite(b[i])) rows.push(i);
    const xs = rows.map((r) => a![r]), ys = rows.map((r) => b![r]);
    const sx = maximize(x.value) ? -1 : 1, sy = maximize(y.value) ? -1 : 1;
    const order = [...rows.keys()].filter((k) => !table.broken(rows[k])).sort((p, q) => sx * (xs[p] - xs[q]) || sy * (ys[p] - ys[q]));
    const front: number[] = [];
    for (const k of order) if (!front.length || sy * ys[k] < sy * ys[front.at(-1)!]) front.push(k);
    const on = new Set(front), answer = asked.value.answer;
    const volume = answer?.case === "pareto" && objectives.length > 1 ? answer.value.volume.at(-1) : undefined;
    return {
      rows, x: xs, y: ys,
      axes: { x: scale(padded(robust(xs) ?? [0, 1])), y: scale(padded(robust(ys) ?? [0, 1])), xLabel: x.value, yLabel: y.value },
      color: (k, t) => (on.has(k) ? t.series[1] : t.series[7]),
      over: (g, f, t) => {
        g.strokeStyle = t.series[1];
        g.lineWidth = 1.8;
        g.beginPath();
        front.forEach((k, i) => {
          if (i) g.lineTo(f.px(xs[k]), f.py(ys[front[i - 1]]));
          else g.moveTo(f.px(xs[k]), f.py(ys[k]));
          g.lineTo(f.px(xs[k]), f.py(ys[k]));
        });
        g.stroke();
      },
      empty: names.value.length < 2 ? "One metric is measured: there is nothing to trade it for." : rows.length ? null : "No trial has both results yet.",
      note: front.length && names.value.length > 1 ? `front of ${front.length}${volume === undefined ? "" : `, hypervolume ${formatValue(volume)}`}` : null,
    };
  });
  return (
    <PointPlot view={view} id="pareto" title="Pareto" height={320} points={points} xAxis={`metrics.${x.value}`} yAxis={`metrics.${y.value}`}
      controls={names.value.length > 1 && <><Select label="Horizontal metric" value={x.value} options={names.value} set={(v) => (x.value = v)} /><Select label="Vertical metric" value={y.value} options={names.value} set={(v) => (y.value = v)} /></>}
      label={(p) => `${y.value} over ${x.value} of ${p.rows.length} trials; ${p.note ?? "no result yet"}.`} />
  );
}
