// Parallel coordinates: an axis for each parameter and objective, a line for each
// trial. Drag along an axis to filter; drag an axis by its name to move it.
import { useComputed, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { query, setQuery } from "../router";
import { boundText, goodEnd, isResult, STATES } from "../data/trials";
import { numbers, type View } from "../data/view";
import { Plot } from "../plot/plot";
import { padded, robust, scale, type Scale } from "../plot/scale";
import type { Size, Surface } from "../plot/surface";
import { goodness, type Theme } from "../plot/theme";
import { clip } from "../plot/xy";
import { Menu } from "../ui/ui";
import { paramScale, pickRow, tip, tipLines } from "./points";

const buckets = 24, top = 46, bottom = 22, side = 46;
/** How many lines are drawn: more take long and only blacken the same places. */
const mostLines = 1500, mostFaint = 400;

/** At most so many of a list, evenly. */
function some(list: number[], most: number): number[] {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, k) => list[Math.floor((k * list.length) / most)]);
}

interface Axis {
  key: string;
  name: string;
  scale: Scale;
  at: (row: number) => number;
}

export function Parallel({ view, height = 360 }: { view: View; height?: number }) {
  const { table } = view;
  const brushing = useSignal<{ key: string; from: number; to: number } | null>(null), moving = useSignal<{ key: string; x: number } | null>(null);
  const all = useComputed(() => [...table.specs.map((s) => `params.${s.name}`), ...(table.revision.value, [...table.metrics.keys()].map((m) => `metrics.${m}`))]);
  const chosen = useComputed(() => {
    const kept = query.value.get("axes");
    if (kept) return kept.split(",").filter((k) => all.value.includes(k));
    return [...table.varied.slice(0, 9).map((s) => `params.${s.name}`), ...table.objectives.map((o) => `metrics.${o.metric}`)];
  });
  const axes = useComputed<Axis[]>(() => {
    table.revision.value;
    return chosen.value.map((key) => {
      const name = key.slice(key.indexOf(".") + 1), at = numbers(table, key)!;
      if (key.startsWith("params.")) return { key, name, at, scale: paramScale(view, name) };
      const o = table.objectives.find((o) => o.metric === name);
      return { key, name, at, scale: scale(padded(robust(table.sound(name), o && goodEnd(o)) ?? [0, 1], false, 0.02)) };
    });
  });
  const x = (k: number, size: Size, n = axes.value.length) => side + (n > 1 ? (k * (size.width - 2 * side)) / (n - 1) : (size.width - 2 * side) / 2);
  const y = (f: number, size: Size) => top + (1 - Math.min(1.02, Math.max(-0.02, f))) * (size.height - top - bottom);
  // Where a line meets an axis, from 0 to 1. Lines of one word are spread a little, so
  // that they can be told apart.
  const place = (a: Axis, row: number) => a.scale.at(a.at(row)) + (a.scale.words ? ((((row * 7919) % 97) / 97 - 0.5) * 0.55) / a.scale.words.length : 0);
  // Of all lines: for the pointer, who looks for the nearest.
  const places = useComputed(() => {
    table.revision.value;
    return axes.value.map((a) => Float32Array.from({ length: table.count }, (_, i) => place(a, i)));
  });
  const rank = view.rank;
  const line = (g: Surface, row: number, size: Size, list = axes.value) => {
    let pen = false;
    for (let k = 0; k < list.length; k++) {
      const f = place(list[k], row);
      if (Number.isNaN(f)) {
        pen = false;
        continue;
      }
      if (pen) g.lineTo(x(k, size, list.length), y(f, size));
      else g.moveTo(x(k, size, list.length), y(f, size));
      pen = true;
    }
  };

  const draw = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const mask = view.mask.value, { side } = view.compared.value, r = rank.value, n = Math.min(table.count, r.length), list = axes.value;
    const groups: number[][] = Array.from({ length: buckets }, () => []), out: number[] = [];
    for (let i = 0; i < n; i++) {
      if (!isResult(table.state[i]) || (Number.isNaN(r[i]) && !side[i] && !table.broken(i))) continue;
      if (mask[i] && !Number.isNaN(r[i])) groups[Math.min(buckets - 1, Math.floor(r[i] * buckets))].push(i);
      else out.push(i);
    }
    g.lineJoin = "round";
    g.lineWidth = 1;
    g.globalAlpha = 0.35;
    g.strokeStyle = t.faint;
    g.beginPath();
    for (const i of some(out, mostFaint)) line(g, i, size, list);
    g.stroke();
    // Of the best all are drawn, of the others a share.
    const total = groups.reduce((a, b) => a + b.length, 0), best = some(groups[0], mostLines / 3);
    const share = Math.min(1, (mostLines - best.length) / Math.max(1, total - groups[0].length));
    const drawn = groups.map((g, b) => (b ? some(g, Math.ceil(g.length * share)) : best)), shown = Math.min(total, mostLines);
    for (let b = buckets - 1; b >= 0; b--) {
      if (!drawn[b].length) continue;
      const good = 1 - b / buckets;
      g.globalAlpha = shown > 2000 ? 0.1 + 0.5 * good ** 4 : shown > 200 ? 0.25 + 0.5 * good ** 3 : 0.7;
      // Wider lines of one path are a hundred times as slow where no GPU draws.
      g.lineWidth = b === 0 && total <= 200 ? 1.4 : 1;
      g.strokeStyle = goodness(b / (buckets - 1), t);
      g.beginPath();
      for (const i of drawn[b]) line(g, i, size, list);
      g.stroke();
    }
    g.globalAlpha = 1;
    drawFrame(g, size, t);
  }, [view]);

  const drawFrame = (g: Surface, size: Size, t: Theme) => {
    const gap = axes.value.length > 1 ? x(1, size) - x(0, size) : size.width;
    axes.value.forEach((a, k) => {
      const ax = x(k, size);
      g.strokeStyle = t.line;
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(Math.round(ax) + 0.5, y(1, size));
      g.lineTo(Math.round(ax) + 0.5, y(0, size));
      g.stroke();
      g.font = `600 11.5px ${t.font}`;
      g.textBaseline = "middle";
      g.textAlign = k === 0 ? "left" : k === axes.value.length - 1 ? "right" : "center";
      const nx = k === 0 ? ax - side + 8 : k === axes.value.length - 1 ? ax + side - 8 : ax;
      g.fillStyle = a.key.startsWith("metrics.") ? t.accent : t.text;
      g.fillText(clip(g, a.name, gap - 10), nx, top - 28);
      g.font = `11px ${t.font}`;
      g.textAlign = k === axes.value.length - 1 ? "right" : "left";
      for (const v of a.scale.ticks(5)) {
        const ty = y(a.scale.at(v), size), text = clip(g, a.scale.text(v), Math.max(30, gap * 0.5)), w = g.measureText(text).width;
        const tx = k === axes.value.length - 1 ? ax - 7 : ax + 7;
        g.fillStyle = t.panel;
        g.globalAlpha = 0.72;
        g.fillRect(k === axes.value.length - 1 ? tx - w - 2 : tx - 2, ty - 7, w + 4, 14);
        g.globalAlpha = 1;
        g.fillStyle = t.muted;
        g.fillText(text, tx, ty);
      }
    });
  };

  const overlay = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const selected = view.selected.value, hover = view.hover.value;
    g.lineWidth = 2.4;
    for (const number of selected) {
      const row = table.row(number);
      if (row < 0) continue;
      g.strokeStyle = t.accent;
      g.beginPath();
      line(g, row, size);
      g.stroke();
    }
    if (hover >= 0 && hover < table.count) {
      g.strokeStyle = t.text;
      g.beginPath();
      line(g, hover, size);
      g.stroke();
    }
    axes.value.forEach((a, k) => {
      const live = brushing.value?.key === a.key ? ([brushing.value.from, brushing.value.to] as const) : null;
      const kept = view.brush.value.get(a.key);
      const range = live ?? (kept ? ([a.scale.at(kept[0]), a.scale.at(kept[1])] as const) : null);
      if (!range) return;
      const y0 = y(Math.max(...range), size), y1 = y(Math.min(...range), size);
      g.globalAlpha = 0.16;
      g.fillStyle = t.accent;
      g.fillRect(x(k, size) - 9, y0, 18, Math.max(2, y1 - y0));
      g.globalAlpha = 1;
      g.strokeStyle = t.accent;
      g.lineWidth = 1.5;
      g.strokeRect(x(k, size) - 9, y0, 18, Math.max(2, y1 - y0));
    });
    if (moving.value) {
      g.strokeStyle = t.accent;
      g.lineWidth = 2;
      g.beginPath();
      g.moveTo(moving.value.x, top - 36);
      g.lineTo(moving.value.x, size.height - bottom);
      g.stroke();
    }
    if (hover >= 0 && pos.value && !brushing.value) tip(g, size, t, pos.value.x, pos.value.y, tipLines(view, hover).slice(0, 1 + table.objectives.length));
  }, [view]);

  const pos = useSignal<{ x: number; y: number } | null>(null);
  const pointer = (e: PointerEvent, at: { x: number; y: number }, size: Size) => {
    const list = axes.value;
    const fraction = () => Math.min(1, Math.max(0, 1 - (at.y - top) / (size.height - top - bottom)));
    const near = list.findIndex((_, k) => Math.abs(x(k, size) - at.x) < 14);
    switch (e.type) {
      case "pointerdown": {
        if (e.button !== 0) return;
        const named = list.findIndex((_, k) => Math.abs(x(k, size) - at.x) < Math.max(30, (x(1, size) - x(0, size)) / 2));
        if (at.y < top - 14 && named >= 0) moving.value = { key: list[named].key, x: at.x };
        else if (near >= 0) brushing.value = { key: list[near].key, from: fraction(), to: fraction() };
        else if (view.hover.value >= 0) pickRow(view, e);
        if (moving.value || brushing.value) (e.currentTarget as Element).setPointerCapture(e.pointerId);
        break;
      }
      case "pointermove":
        if (moving.value) moving.value = { ...moving.value, x: at.x };
        else if (brushing.value) {
          brushing.value = { ...brushing.value, to: fraction() };
          commit(false);
        } else {
          pos.value = at;
          view.hover.value = nearestLine(at, size);
        }
        break;
      case "pointerup":
        if (moving.value) {
          const others = list.filter((a) => a.key !== moving.value!.key).map((a) => a.key);
          const to = Math.round(((at.x - side) / (size.width - 2 * side)) * (list.length - 1));
          others.splice(Math.max(0, to), 0, moving.value.key);
          setQuery({ axes: others.join(",") });
        } else if (brushing.value) commit(true);
        moving.value = brushing.value = null;
        break;
      case "pointercancel":
        moving.value = brushing.value = null;
        break;
      case "pointerleave":
        if (!brushing.value) view.hover.value = -1;
        pos.value = null;
        break;
      case "dblclick":
        for (const key of view.brush.value.keys()) view.setBrush(key, null);
        break;
    }
  };
  const frameOf = useMemo(() => ({ id: 0 }), []);
  function commit(last: boolean) {
    const b = brushing.value!;
    const put = () => {
      const a = axes.value.find((a) => a.key === b.key)!;
      if (Math.abs(b.from - b.to) < 0.006) return last && view.setBrush(b.key, null);
      view.setBrush(b.key, [a.scale.invert(Math.min(b.from, b.to)), a.scale.invert(Math.max(b.from, b.to))]);
    };
    cancelAnimationFrame(frameOf.id);
    if (last) put();
    else frameOf.id = requestAnimationFrame(put);
  }
  function nearestLine(at: { x: number; y: number }, size: Size): number {
    const n = axes.value.length, mask = view.mask.value;
    if (n < 2) return -1;
    const gap = x(1, size) - x(0, size), k = Math.min(n - 2, Math.max(0, Math.floor((at.x - side) / gap)));
    const f = (at.x - x(k, size)) / gap, a = places.value[k], b = places.value[k + 1];
    const want = 1 - (at.y - top) / (size.height - top - bottom);
    let best = -1, least = 10 / (size.height - top - bottom);
    for (let i = 0; i < Math.min(mask.length, a.length); i++) {
      if (!mask[i] || !isResult(table.state[i])) continue;
      const d = Math.abs(a[i] + (b[i] - a[i]) * f - want);
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  return (
    <Plot wide id="parallel" title="Parallel coordinates" height={height} draw={draw} overlay={overlay} pointer={pointer}
      label={() => `${view.shown.value} of ${table.count} trials over ${axes.value.length} axes: ${axes.value.map((a) => a.name).join(", ")}.`}
      note={() => view.noted(view.shown.value > mostLines ? `${mostLines.toLocaleString("en")} of ${view.shown.value.toLocaleString("en")} lines, all of the best; drag along an axis to filter` : `drag along an axis to filter${table.bounds.length ? `; grey: break ${table.bounds.map(boundText).join(" or ")}` : ""}`, "are grey")}
      empty={() => (table.revision.value, table.count === 0 ? "No trial yet." : !table.bounds.length && rank.value.every((v) => Number.isNaN(v)) ? "No trial has a result." : null)}
      controls={<Menu label="Axes" icon="columns" keep items={all.value.map((key) => ({
        text: key.slice(key.indexOf(".") + 1),
        checked: chosen.value.includes(key),
        act: () => setQuery({ axes: (chosen.value.includes(key) ? chosen.value.filter((k) => k !== key) : [...chosen.value, key]).join(",") }),
      }))} />}
      table={() => ({
        head: ["trial", "state", ...axes.value.map((a) => a.name)],
        rows: Array.from({ length: table.count }, (_, i) => i).filter((i) => view.mask.value[i]).map((i) => [
          table.number[i], STATES[table.state[i]], ...axes.value.map((a) => (a.scale.words ? a.scale.text(a.at(i)) : a.at(i))),
        ]),
      })} />
  );
}
