import { useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Model } from "../data/experiment";
import { formatValue, State } from "../data/trials";
import type { View } from "../data/view";
import { Plot } from "../plot/plot";
import { robust, scale } from "../plot/scale";
import type { Size, Surface } from "../plot/surface";
import { goodness, type Theme } from "../plot/theme";
import { drawAxes, frame } from "../plot/xy";
import { answered, useAnswer } from "./ask";
import { paramScale, tip } from "./points";

const steps = 12, legend = 62;

/** The objective over two parameters, as the results near each place have it. */
export function Contour({ model, view, x, y, controls }: { model: Model; view: View; x: string; y: string; controls: ComponentChildren }) {
  const at = useSignal<{ x: number; y: number } | null>(null), names = useSignal([x, y]);
  useEffect(() => { names.value = [x, y]; }, [x, y]);
  const asked = useAnswer(model, view, { case: "contour", value: { $typeName: "vernier.v1.AnalyzeRequest.Contour", x, y, points: 48 } });
  const grid = useComputed(() => {
    const a = asked.value.answer;
    if (a?.case !== "contour" || a.value.x?.name !== names.value[0] || a.value.y?.name !== names.value[1]) return null;
    const g = a.value, range = robust(g.z.filter((v) => !Number.isNaN(v)));
    const length = (c: typeof g.x) => c!.text?.index.length || c!.number.length;
    return { z: g.z, nx: length(g.x), ny: length(g.y), x: g.x!, y: g.y!, range };
  });
  const axes = useComputed(() => ({
    x: names.value[0] ? paramScale(view, names.value[0]) : scale([0, 1]), y: names.value[1] ? paramScale(view, names.value[1]) : scale([0, 1]),
    xLabel: names.value[0], yLabel: names.value[1],
  }));
  // The legend is to the right.
  const place = (size: Size) => frame({ ...size, width: size.width - (grid.value?.range ? legend : 0) }, axes.value);
  // Where the cells of an axis begin and end: half way between their values.
  const edges = (n: number, words: boolean) => Array.from({ length: n + 1 }, (_, i) => (words ? i / n : n === 1 ? i : Math.min(1, Math.max(0, (i - 0.5) / (n - 1)))));
  const draw = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    view.table.revision.value;
    const c = grid.value, f = place(size);
    if (c?.range) {
      const [lo, hi] = c.range, span = hi - lo || 1;
      // In steps: their borders are the contours.
      const color = (step: number) => goodness(view.objective.value.maximize ? 1 - step / (steps - 1) : step / (steps - 1), t);
      const ex = edges(c.nx, !!axes.value.x.words), ey = edges(c.ny, !!axes.value.y.words);
      for (let j = 0; j < c.ny; j++) {
        for (let i = 0; i < c.nx; i++) {
          const v = c.z[j * c.nx + i];
          if (Number.isNaN(v)) continue;
          g.fillStyle = color(Math.min(steps - 1, Math.max(0, Math.floor(((v - lo) / span) * steps))));
          const x0 = Math.floor(f.left + ex[i] * f.width), x1 = Math.ceil(f.left + ex[i + 1] * f.width), y1 = Math.ceil(f.top + (1 - ey[j]) * f.height), y0 = Math.floor(f.top + (1 - ey[j + 1]) * f.height);
          g.fillRect(x0, y0, x1 - x0, y1 - y0);
        }
      }
      const left = f.left + f.width + 14, high = (f.height - 36) / steps;
      for (let k = 0; k < steps; k++) {
        g.fillStyle = color(k);
        g.fillRect(left, f.top + 18 + (steps - 1 - k) * high, 12, high + 0.5);
      }
      g.font = `11px ${t.font}`;
      g.fillStyle = t.muted;
      g.textAlign = "left";
      g.textBaseline = "middle";
      for (const [v, y] of [[hi, f.top + 8], [(lo + hi) / 2, f.top + f.height / 2], [lo, f.top + f.height - 8]]) g.fillText(formatValue(v), left + (v === hi || v === lo ? 0 : 16), y);
    }
    drawAxes(g, f, axes.value, t);
    const a = view.table.params.get(names.value[0]), b = view.table.params.get(names.value[1]), mask = view.mask.value, { leftOut, resource } = asked.value;
    const step = Math.max(1, Math.ceil(view.table.count / 1500));
    g.globalAlpha = 0.55;
    g.fillStyle = t.dark ? "#fff" : "#000";
    for (let i = 0; c?.range && a && b && i < mask.length; i += step) {
      if (!mask[i] || view.table.state[i] !== State.succeeded || (leftOut && view.compared.value.of(i) !== resource)) continue;
      g.fillRect(f.px(a[i]) - 1, f.py(b[i]) - 1, 2, 2);
    }
    g.globalAlpha = 1;
  }, []);
  const overlay = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const c = grid.value, f = place(size);
    if (!at.value || !c) return;
    const fx = (at.value.x - f.left) / f.width, fy = 1 - (at.value.y - f.top) / f.height;
    if (fx < 0 || fx > 1 || fy < 0 || fy > 1) return;
    const i = axes.value.x.words ? Math.min(c.nx - 1, Math.floor(fx * c.nx)) : Math.round(fx * (c.nx - 1)), j = axes.value.y.words ? Math.min(c.ny - 1, Math.floor(fy * c.ny)) : Math.round(fy * (c.ny - 1));
    tip(g, size, t, at.value.x, at.value.y, [[names.value[0], f.x.text(f.x.invert(fx))], [names.value[1], f.y.text(f.y.invert(fy))], [view.objective.value.metric, formatValue(c.z[j * c.nx + i])]]);
  }, []);
  return (
    <Plot id="contour" title="Contour" height={320} draw={draw} overlay={overlay} controls={controls} note={() => answered(asked.value, view.table) ?? (grid.value?.z.some(Number.isNaN) ? "blank: no trial is near" : null)}
      label={() => `${view.objective.value.metric} over ${x} and ${y}${grid.value?.range ? `, from ${grid.value.range.map(formatValue).join(" to ")}` : ""}.`}
      pointer={(e, p) => { at.value = e.type === "pointerleave" ? null : p; }}
      empty={() => asked.value.error || (x === y ? "Choose two parameters." : asked.value.answer ? (grid.value?.range ? null : "There are too few results yet.") : "Asking…")}
      table={() => {
        const c = grid.value;
        const cell = (col: { text?: { texts: string[]; index: number[] }; number: number[] }, i: number) => (col.text ? col.text.texts[col.text.index[i]] : col.number[i]);
        return { head: [x, y, view.objective.value.metric], rows: c ? c.z.map((v, k) => [cell(c.x, k % c.nx), cell(c.y, Math.floor(k / c.nx)), v] as (string | number)[]).filter((r) => !Number.isNaN(r[2])) : [] };
      }} />
  );
}
