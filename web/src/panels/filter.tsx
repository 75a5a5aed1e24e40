// The filter that all panels share: a query, brushes as chips, the selection.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { View } from "../data/view";
import { formatValue } from "../data/trials";
import { Icon, Select } from "../ui/ui";
import { go, search, setQuery } from "../router";

export function FilterBar({ view }: { view: View }) {
  const text = useSignal(view.text.peek()), box = useRef<HTMLInputElement>(null), timer = useRef(0);
  useEffect(() => {
    if (document.activeElement !== box.current) text.value = view.text.value;
  }, [view.text.value]);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const typing = (e.target as Element).closest("input,textarea,select,.cm-editor,dialog");
      if (e.key === "/" && !typing) {
        e.preventDefault();
        box.current?.focus();
      } else if (e.key === "Escape" && (!typing || typing === box.current) && view.filtered.peek()) {
        view.clear();
        text.value = "";
      } else if (e.key === "c" && !typing && !e.metaKey && !e.ctrlKey && view.selected.peek().size > 1) go(`${view.path}/compare${search()}`);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [view]);
  const put = (v: string) => {
    text.value = v;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => view.setText(v), 150) as unknown as number;
  };
  const selected = view.selected.value, problem = view.parsed.value.error;
  const name = (axis: string) => axis.slice(axis.indexOf(".") + 1);
  const spell = (axis: string, [lo, hi]: [number, number]) => {
    const spec = view.table.specs.find((s) => `params.${s.name}` === axis);
    if (spec?.words) return spec.words.filter((_, i) => i >= lo && i <= hi).join(", ") || "none";
    return `${formatValue(lo)} to ${formatValue(hi)}`;
  };
  return (
    <div class="filter" role="search">
      <div class="search">
        <Icon name="search" size={15} />
        <input ref={box} type="search" aria-label="Filter trials" aria-invalid={!!problem} spellcheck={false} autocomplete="off"
          placeholder={`Filter: state=failed, ${view.objective.value.metric || "loss"}<0.4 AND …   ( / )`} value={text.value} onInput={(e) => put(e.currentTarget.value)} />
        {problem && text.value && <div class="problem" role="status">{problem}</div>}
      </div>
      {view.table.objectives.length > 1 && <Select label="Objective" value={view.objective.value.metric} options={view.table.objectives.map((o) => o.metric)} set={(m) => setQuery({ m })} />}
      {[...view.brush.value].map(([axis, range]) => (
        <span class="chip" key={axis}><span>{name(axis)}: {spell(axis, range)}</span>
          <button type="button" class="icon-button" aria-label={`Remove the filter of ${name(axis)}`} onClick={() => view.setBrush(axis, null)}><Icon name="close" size={12} /></button></span>
      ))}
      {selected.size > 0 && (
        <>
          <span class="chip"><span>{selected.size} selected</span>
            <button type="button" class="icon-button" aria-label="Clear the selection" onClick={() => view.select([])}><Icon name="close" size={12} /></button></span>
          <button type="button" class="button small" disabled={selected.size < 2} onClick={() => go(`${view.path}/compare${search()}`)}><Icon name="compare" size={14} />Compare</button>
        </>
      )}
      {view.filtered.value && <span class="note" role="status">{view.shown.value.toLocaleString("en")} of {view.table.count.toLocaleString("en")} trials</span>}
    </div>
  );
}
