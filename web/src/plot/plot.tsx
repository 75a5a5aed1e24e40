// A plot: its frame, its canvas, what can be done with it. It draws only while it is
// in view and the page is not hidden; below a fold it costs nothing.
import { effect, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon, Menu } from "../ui/ui";
import { SvgSurface, type Size, type Surface } from "./surface";
import { theme, type Theme } from "./theme";
import { awake } from "../data/awake";

export interface Table {
  head: string[];
  rows: (string | number)[][];
  more?: string;
}

export interface PlotProps {
  title: string;
  id: string;
  /** One sentence that says what is to be seen, for those who do not see it. */
  label: () => string;
  height?: number;
  draw: (g: Surface, size: Size, t: Theme) => void;
  /** What changes with the pointer, over what draw has drawn. */
  overlay?: (g: Surface, size: Size, t: Theme) => void;
  table: () => Table;
  empty?: () => string | null;
  note?: () => string | null;
  controls?: ComponentChildren;
  pointer?: (e: PointerEvent, at: { x: number; y: number }, size: Size) => void;
  onKey?: (e: KeyboardEvent) => void;
  cursor?: string;
  wide?: boolean;
}

export function Plot(p: PlotProps) {
  const base = useRef<HTMLCanvasElement>(null), over = useRef<HTMLCanvasElement>(null), box = useRef<HTMLDivElement>(null);
  const seen = useSignal(false), size = useSignal<Size>({ width: 0, height: 0 }), asTable = useSignal(false);
  const latest = useRef(p);
  latest.current = p;
  const version = useSignal(0);
  const before = useRef(p.draw);
  if (before.current !== p.draw) {
    before.current = p.draw;
    queueMicrotask(() => version.value++);
  }
  const height = p.height ?? 300;

  useEffect(() => {
    const node = box.current!;
    const view = new IntersectionObserver(([e]) => (seen.value = e.isIntersecting), { rootMargin: "120px" });
    const shape = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = node;
      if (width !== size.value.width || height !== size.value.height) size.value = { width, height };
    });
    view.observe(node);
    shape.observe(node);
    const stop = [
      painted(() => paint(base.current, (g, s, t) => latest.current.draw(g, s, t))),
      effect(() => paint(over.current, (g, s, t) => latest.current.overlay?.(g, s, t))),
    ];
    function paint(canvas: HTMLCanvasElement | null, draw: PlotProps["draw"]) {
      version.value;
      const s = size.value, t = theme.value;
      if (!canvas || !seen.value || !awake.value || s.width === 0 || asTable.value) return;
      const ratio = devicePixelRatio || 1, w = Math.round(s.width * ratio), h = Math.round(s.height * ratio);
      if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
      const g = canvas.getContext("2d")!;
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.clearRect(0, 0, s.width, s.height);
      draw(g, s, t);
    }
    return () => {
      view.disconnect();
      shape.disconnect();
      stop.forEach((s) => s());
    };
  }, []);

  const pointer = (e: PointerEvent) => {
    const r = box.current!.getBoundingClientRect();
    latest.current.pointer?.(e, { x: e.clientX - r.left, y: e.clientY - r.top }, size.value);
  };
  const save = (kind: "png" | "svg" | "csv") => {
    const { id, draw, table } = latest.current, s = size.value;
    if (kind === "csv") return download(`${id}.csv`, new Blob([csv(table())], { type: "text/csv" }));
    if (kind === "svg") {
      const g = new SvgSurface(s, theme.value.panel);
      draw(g, s, theme.value);
      return download(`${id}.svg`, new Blob([g.text()], { type: "image/svg+xml" }));
    }
    const c = document.createElement("canvas");
    [c.width, c.height] = [s.width * 2, s.height * 2];
    const g = c.getContext("2d")!;
    g.scale(2, 2);
    g.fillStyle = theme.value.panel;
    g.fillRect(0, 0, s.width, s.height);
    draw(g, s, theme.value);
    c.toBlob((b) => b && download(`${id}.png`, b));
  };
  const empty = p.empty?.() ?? null;
  const note = p.note?.() ?? null;

  return (
    <section class={`panel plot${p.wide ? " wide" : ""}`} aria-labelledby={`t-${p.id}`} id={`plot-${p.id}`}>
      <header class="panel-head">
        <h2 id={`t-${p.id}`}>{p.title}</h2>
        {note && <span class="note" title={note}>{note}</span>}
        <div class="panel-tools">
          {p.controls}
          <button class="icon-button" type="button" aria-pressed={asTable.value} title={asTable.value ? "Show as plot" : "Show as table"}
            aria-label={`${p.title}: show as ${asTable.value ? "plot" : "table"}`} onClick={() => (asTable.value = !asTable.value)}>
            <Icon name={asTable.value ? "chart" : "table"} />
          </button>
          <Menu label={`Save ${p.title}`} icon="download" items={[
            { text: "PNG image", act: () => save("png") },
            { text: "SVG image", act: () => save("svg") },
            { text: "CSV of the data", act: () => save("csv") },
          ]} />
        </div>
      </header>
      {asTable.value && <TableView table={p.table()} title={p.title} height={height} />}
      <div class="plot-box" ref={box} hidden={asTable.value} style={{ height: `${height}px`, cursor: p.cursor }}
        role="img" aria-label={p.label()} tabIndex={p.onKey ? 0 : undefined} onKeyDown={p.onKey}
        onPointerDown={pointer} onPointerMove={pointer} onPointerUp={pointer} onPointerCancel={pointer} onPointerLeave={pointer}
        onDblClick={(e) => latest.current.pointer?.(e as unknown as PointerEvent, { x: 0, y: 0 }, size.value)}>
        <canvas ref={base} aria-hidden="true" />
        <canvas ref={over} aria-hidden="true" />
        {empty && <p class="plot-empty">{empty}</p>}
      </div>
    </section>
  );
}

const waiting = new Set<() => void>();
let asked = 0;

// Paints what waits for as long as a frame may take; the rest is painted in the next
// frames, so that no plot holds up the others, the pointer or the keyboard.
function paintWaiting() {
  asked = 0;
  const begun = performance.now();
  for (const paint of waiting) {
    waiting.delete(paint);
    paint();
    if (performance.now() - begun > 8) break;
  }
  if (waiting.size) asked = requestAnimationFrame(paintWaiting);
}

/** Like effect, but what changes is painted in a frame of its own. */
function painted(paint: () => void): () => void {
  let end = () => {};
  const run = () => {
    let first = true;
    const stop = effect(() => {
      if (first) paint();
      else {
        queueMicrotask(stop);
        waiting.add(run);
        asked ||= requestAnimationFrame(paintWaiting);
      }
      first = false;
    });
    end = stop;
  };
  run();
  return () => {
    waiting.delete(run);
    end();
  };
}

function TableView({ table, title, height }: { table: Table; title: string; height: number }) {
  const most = 500;
  return (
    <div class="scroll" style={{ height: `${height}px` }} tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table class="grid">
        <thead><tr>{table.head.map((h) => <th scope="col" key={h}>{h}</th>)}</tr></thead>
        <tbody>
          {table.rows.slice(0, most).map((r, i) => <tr key={i}>{r.map((c, k) => <td key={k} class={typeof c === "number" ? "num" : ""}>{Number.isNaN(c) ? "–" : c}</td>)}</tr>)}
        </tbody>
      </table>
      {(table.rows.length > most || table.more) && <p class="note pad">{table.more ?? `The first ${most} of ${table.rows.length} rows; the CSV has all.`}</p>}
    </div>
  );
}

/** As a spreadsheet reads it; what it would take for a formula is marked as text. */
export function csv({ head, rows }: Table): string {
  const cell = (v: string | number) => {
    if (typeof v === "number") return Number.isNaN(v) ? "" : String(v);
    const s = /^[=+\-@\t\r]/.test(v) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(v) ? "'" + v : v;
    return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
  };
  return [head, ...rows].map((r) => r.map(cell).join(",")).join("\n") + "\n";
}

export function download(name: string, blob: Blob) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}
