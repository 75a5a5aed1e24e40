// The trials as a table that has rows only where it is looked at.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { go, href, query, setQuery } from "../router";
import { boundText, formatDuration, formatValue, STATES } from "../data/trials";
import type { View } from "../data/view";
import { csv, download } from "../plot/plot";
import { Icon, Menu, StateMark } from "../ui/ui";

const rowHeight = 32;

interface Column {
  key: string;
  title: string;
  /** Which of a metric's values it has. */
  note?: string;
  width: number;
  number: boolean;
  text: (i: number) => string;
}

const usages: Record<string, [string, string]> = { gpu_utilization: ["GPU use", " %"], gpu_memory: ["GPU memory", " GiB"], cpu_cores: ["Cores used", ""], memory: ["Memory", " GiB"] };

/** The cause of a failure without the words that each one has, as a cell has room for little. */
export const briefly = (message: string) => message.replace(/^Trial has failed\. (container \S+ of pod \S+ )?/, "");

export function columnsOf(view: View): Column[] {
  const { table } = view;
  const wide = (name: string, least: number) => Math.min(190, Math.max(least, 34 + name.length * 7));
  return [
    { key: "number", title: "Trial", width: 78, number: true, text: (i) => String(table.number[i]) },
    { key: "state", title: "State", width: 124, number: false, text: (i) => STATES[table.state[i]] },
    ...[...table.metrics.keys()].map((m) => ({ key: `metrics.${m}`, title: m, note: table.strategies.get(m), width: wide(m + (table.strategies.get(m) ?? ""), 100), number: true, text: (i: number) => formatValue(table.metrics.get(m)![i]) })),
    ...table.specs.map((s) => ({ key: `params.${s.name}`, title: s.name, width: wide(s.name, 92), number: !s.words, text: (i: number) => table.text(s, table.params.get(s.name)![i]) || "–" })),
    ...[...table.usage.keys()].map((u) => ({ key: `usage.${u}`, title: usages[u]?.[0] ?? u, width: 118, number: true, text: (i: number) => formatValue(table.usage.get(u)![i]) + (Number.isNaN(table.usage.get(u)![i]) ? "" : (usages[u]?.[1] ?? "")) })),
    { key: "duration", title: "Duration", width: 104, number: true, text: (i) => formatDuration(table.duration(i)) },
    { key: "message", title: "Why", width: 320, number: false, text: (i) => [table.divergence(i), briefly(table.message[i])].filter(Boolean).join(". ") },
  ];
}

export function Trials({ view, height }: { view: View; height: number }) {
  const { table } = view;
  const scroll = useSignal(0), cursor = useSignal(-1), room = useSignal(height);
  const box = useRef<HTMLDivElement>(null);
  const all = useComputed(() => (table.revision.value, columnsOf(view)));
  const shown = useComputed(() => {
    const kept = query.value.get("cols")?.split(",");
    if (kept) return kept.map((k) => all.value.find((c) => c.key === k)).filter((c) => c !== undefined);
    return all.value.filter((c) => {
      if (c.key.startsWith("params.")) return varies(view, c.key.slice(7));
      if (c.key.startsWith("usage.")) return false;
      if (c.key.startsWith("metrics.")) return [...table.objectives, ...table.bounds].some((o) => `metrics.${o.metric}` === c.key);
      return true;
    });
  });
  // "loss,-number": by loss, then the newest first.
  const order = useComputed(() => {
    const q = view.parsed.value.query?.order ?? [];
    if (q.length) return q;
    return (query.value.get("sort") ?? "-number").split(",").filter(Boolean).map((k) => ({ key: k.replace(/^-/, ""), descending: k.startsWith("-") }));
  });
  const rows = useComputed(() => {
    const mask = view.mask.value, out: number[] = [];
    for (let i = 0; i < mask.length; i++) if (mask[i]) out.push(i);
    const keys = order.value.map((o) => ({ at: table.column(o.key), sign: o.descending ? -1 : 1 })).filter((k) => k.at);
    return out.sort((a, b) => {
      for (const { at, sign } of keys) {
        const x = at!(a), y = at!(b);
        if (x === y) continue;
        if (typeof x === "number" && typeof y === "number") {
          // What has no value comes last in both directions.
          if (Number.isNaN(x) || Number.isNaN(y)) { if (Number.isNaN(x) && Number.isNaN(y)) continue; return Number.isNaN(x) ? 1 : -1; }
          return sign * (x - y);
        }
        return sign * String(x).localeCompare(String(y), "en", { numeric: true });
      }
      return b - a;
    });
  });
  const sort = (key: string, add: boolean) => {
    const now = order.value.find((o) => o.key === key);
    const word = now && !now.descending ? `-${key}` : key;
    const others = add ? order.value.filter((o) => o.key !== key).map((o) => (o.descending ? "-" : "") + o.key) : [];
    setQuery({ sort: [...others, word].join(",") });
  };
  useEffect(() => {
    const at = box.current!; // an observer may be told of a box that is gone
    const shape = new ResizeObserver(() => (room.value = at.clientHeight));
    shape.observe(at);
    return () => shape.disconnect();
  }, []);

  const list = rows.value, cols = shown.value;
  // Rows that are looked at stay where they are when others come above them.
  const top = useRef(-1);
  const moved = () => {
    scroll.value = box.current!.scrollTop;
    top.current = scroll.value > 0 ? (rows.peek()[Math.floor(scroll.value / rowHeight)] ?? -1) : -1;
  };
  useLayoutEffect(() => {
    const at = list.indexOf(top.current), was = Math.floor(box.current!.scrollTop / rowHeight);
    if (at >= 0 && at !== was) box.current!.scrollTop += (at - was) * rowHeight;
  }, [list]);
  useEffect(() => { top.current = -1; }, [JSON.stringify(order.value)]); // another order begins anew
  const first = Math.max(0, Math.floor(scroll.value / rowHeight) - 6), last = Math.min(list.length, Math.ceil((scroll.value + room.value) / rowHeight) + 6);
  const grid = `40px ${cols.map((c, k) => (k === cols.length - 1 ? `minmax(${c.width}px, 1fr)` : `${c.width}px`)).join(" ")}`;
  const best = view.best.value;
  const key = (e: KeyboardEvent) => {
    const at = list.indexOf(cursor.value);
    const move = (to: number) => {
      if (!list.length) return;
      to = Math.min(list.length - 1, Math.max(0, to));
      cursor.value = list[to];
      const y = to * rowHeight, b = box.current!;
      if (y < b.scrollTop) b.scrollTop = y;
      else if (y + rowHeight * 2 > b.scrollTop + b.clientHeight) b.scrollTop = y + rowHeight * 2 - b.clientHeight + 4;
      e.preventDefault();
    };
    if (e.metaKey || e.ctrlKey || e.altKey) return;
    switch (e.key) {
      case "j": case "ArrowDown": return move(at + 1);
      case "k": case "ArrowUp": return move(at - 1);
      case "PageDown": return move(at + 12);
      case "PageUp": return move(at - 12);
      case "Home": return move(0);
      case "End": return move(list.length - 1);
      case "x": case " ": if (at >= 0) { view.toggle(table.number[list[at]]); e.preventDefault(); } return;
      case "Enter": if (at >= 0) go(view.trialPath(table.number[list[at]])); return;
    }
  };
  return (
    <section class="panel wide" aria-label="Trials">
      <header class="panel-head">
        <h2>Trials</h2>
        <span class="note">{list.length.toLocaleString("en")}{list.length !== table.count && ` of ${table.count.toLocaleString("en")}`}</span>
        <div class="panel-tools">
          <Menu label="Columns" icon="columns" keep items={all.value.map((c) => ({
            text: c.title, checked: cols.includes(c),
            act: () => setQuery({ cols: (cols.includes(c) ? cols.filter((d) => d !== c) : [...cols, c]).map((d) => d.key).join(",") }),
          }))} />
          <Menu label="Save trials" icon="download" items={[
            { text: "CSV of what is shown", act: () => download(`${table.experiment}.csv`, new Blob([csv({ head: cols.map((c) => c.key), rows: list.map((i) => cols.map((c) => value(view, c, i))) })], { type: "text/csv" })) },
            { text: "JSON Lines of what is shown", act: () => download(`${table.experiment}.jsonl`, new Blob([list.map((i) => JSON.stringify(Object.fromEntries(cols.map((c) => [c.key, value(view, c, i)])))).join("\n") + "\n"], { type: "application/jsonl" })) },
          ]} />
        </div>
      </header>
      <div class="vtable" ref={box} style={{ height: `${Math.min(height, Math.max(160, (list.length + 1) * rowHeight + 20))}px` }} tabIndex={0} role="grid" aria-rowcount={list.length + 1} aria-colcount={cols.length + 1}
        aria-label="Trials. Arrows move, space selects, Enter opens." onKeyDown={key} onScroll={moved} onMouseLeave={() => (view.hover.value = -1)}>
        <div role="rowgroup"><div class="vhead" role="row" style={{ gridTemplateColumns: grid }}>
          <div role="columnheader" class="pick"><span class="sr">Selected</span></div>
          {cols.map((c) => {
            const o = order.value.find((o) => o.key === c.key);
            return (
              <div key={c.key} role="columnheader" aria-sort={o ? (o.descending ? "descending" : "ascending") : "none"} class={c.number ? "num" : ""}>
                <button type="button" title={`Sort by ${c.title}; with Shift as well`} tabIndex={-1} onClick={(e) => sort(c.key, e.shiftKey)}>
                  <b>{c.title}</b>{c.note && <small class="muted">{c.note}</small>}{o && <span aria-hidden="true">{o.descending ? "↓" : "↑"}</span>}
                </button>
              </div>
            );
          })}
        </div></div>
        <div role="rowgroup" style={{ height: `${list.length * rowHeight}px`, position: "relative" }}>
          {list.slice(first, last).map((i, k) => {
            const number = table.number[i], chosen = view.selected.value.has(number), broken = table.broken(i);
            const faultOf = (c: Column) => (broken && c.key === `metrics.${broken.metric}` ? `It breaks the bound ${boundText(broken)}` : (c.key.startsWith("metrics.") && table.divergence(i, c.key.slice("metrics.".length))) || undefined);
            return (
              <div key={number} role="row" aria-rowindex={first + k + 2} aria-selected={chosen} style={{ top: `${(first + k) * rowHeight}px`, gridTemplateColumns: grid }}
                class={`vrow${chosen ? " chosen" : ""}${cursor.value === i ? " cursor" : ""}${view.hover.value === i ? " hover" : ""}`}
                onMouseEnter={() => (view.hover.value = i)} onClick={(e) => { if (!(e.target as Element).closest("a,input")) { cursor.value = i; } }} onDblClick={() => go(view.trialPath(number))}>
                <div role="gridcell" class="pick"><input type="checkbox" tabIndex={-1} aria-label={`Select trial ${number}`} checked={chosen} onChange={() => view.toggle(number)} /></div>
                {cols.map((c) => (
                  <div key={c.key} role="gridcell" class={`${c.number ? "num" : ""}${i === best && c.key === `metrics.${view.objective.value.metric}` ? " best" : ""}`} title={c.key === "message" ? [table.divergence(i), table.message[i]].filter(Boolean).join(". ") : faultOf(c)}>
                    {c.key === "number" ? <><a tabIndex={-1} href={href(view.trialPath(number))}>{number}</a>{table.onFront(i) && <b title="No other trial beats it in all objectives"> *</b>}</> : c.key === "state" ? <StateMark state={table.state[i]} /> : faultOf(c) ? <span class="bad">{c.text(i)} !</span> : c.text(i)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {list.length === 0 && <p class="note pad">{table.count ? "No trial passes the filter." : "No trial yet."} {view.filtered.value && <button type="button" class="button" onClick={() => view.clear()}>Clear the filter</button>}</p>}
      <footer class="note pad"><Icon name="info" size={13} /> <kbd>j</kbd> <kbd>k</kbd> move, <kbd>x</kbd> selects, <kbd>Enter</kbd> opens. Shift and a click on a column sorts by it as well.</footer>
    </section>
  );
}

function value(view: View, c: Column, i: number): string | number {
  const v = view.table.column(c.key)?.(i) ?? "";
  return typeof v === "number" && Number.isNaN(v) ? "" : v;
}

/** Whether a parameter has more than one value. */
function varies(view: View, name: string): boolean {
  const v = view.table.params.get(name)!, n = view.table.count;
  if (n < 2) return true;
  for (let i = 1; i < n; i++) if (v[i] !== v[0] && !(Number.isNaN(v[i]) && Number.isNaN(v[0]))) return true;
  return false;
}

