import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { goodEnd, isSound } from "../data/trials";
import type { View } from "../data/view";
import { padded, robust, scale } from "../plot/scale";
import { goodness } from "../plot/theme";
import { paramScale, PointPlot, type Points } from "./points";

/** The objective over one parameter. */
export function Slice({ view, name, controls }: { view: View; name: string; controls: ComponentChildren }) {
  const chosen = useSignal(name);
  useEffect(() => { chosen.value = name; }, [name]);
  const points = useComputed<Points>(() => {
    const { table } = view, o = view.objective.value;
    table.revision.value;
    const v = table.metrics.get(o.metric), p = table.params.get(chosen.value);
    const rows: number[] = [];
    for (let i = 0; v && p && i < table.count; i++) if (Number.isFinite(v[i]) && isSound(table.state[i]) && !Number.isNaN(p[i]) && !view.compared.value.side[i]) rows.push(i);
    const y = rows.map((r) => v![r]), most = Math.max(1, table.count - 1);
    return {
      rows, x: rows.map((r) => p![r]), y,
      axes: { x: chosen.value ? paramScale(view, chosen.value) : scale([0, 1]), y: scale(padded(robust(y, goodEnd(o)) ?? [0, 1])), xLabel: chosen.value, yLabel: o.metric },
      // The later a trial, the stronger: what the algorithm went to.
      color: (k, t) => goodness(1 - table.number[rows[k]] / most, t),
      empty: rows.length ? null : "No trial has a result.",
      note: view.noted(rows.length ? "strong: late trials" : null),
    };
  });
  return <PointPlot key={name} view={view} id={`slice-${name}`} title="Slice" height={320} points={points} xAxis={`params.${name}`} yAxis={`metrics.${view.objective.value.metric}`} controls={controls} jitter
    label={(p) => `${view.objective.value.metric} of ${p.rows.length} trials over ${name}.`} />;
}

/** Two parameters; the colour says how good a trial is among all. */
export function Rank({ view, x, y, controls }: { view: View; x: string; y: string; controls: ComponentChildren }) {
  const chosen = useSignal([x, y]);
  useEffect(() => { chosen.value = [x, y]; }, [x, y]);
  const points = useComputed<Points>(() => {
    const { table } = view, [a, b] = chosen.value;
    table.revision.value;
    const r = view.rank.value, px = table.params.get(a), py = table.params.get(b);
    const rows: number[] = [];
    for (let i = 0; px && py && i < table.count; i++) if (!Number.isNaN(r[i]) && !Number.isNaN(px[i]) && !Number.isNaN(py[i])) rows.push(i);
    rows.sort((i, j) => r[j] - r[i]); // the best on top
    return {
      rows, x: rows.map((i) => px![i]), y: rows.map((i) => py![i]),
      axes: { x: a ? paramScale(view, a) : scale([0, 1]), y: b ? paramScale(view, b) : scale([0, 1]), xLabel: a, yLabel: b },
      color: (k, t) => goodness(r[rows[k]], t),
      empty: rows.length ? null : table.bounds.length ? "No result is within the bounds yet." : "No trial has a result.",
      note: view.noted(rows.length ? `strong: good trials${table.bounds.length ? ", within the bounds" : ""}` : null),
    };
  });
  return <PointPlot key={x + y} view={view} id={`rank-${x}-${y}`} title="Rank" height={320} points={points} xAxis={`params.${x}`} yAxis={`params.${y}`} controls={controls} jitter
    label={(p) => `${p.rows.length} trials over ${x} and ${y}, coloured by how good they are.`} />;
}
