// A few trials beside each other: what differs, and their curves in one plot.
import { useSignal } from "@preact/signals";
import { pathOf, type Model } from "../data/experiment";
import { isSame, linesOf } from "../data/compare";
import type { View } from "../data/view";
import { Curves } from "../panels/curves";
import { theme } from "../plot/theme";
import { href, search } from "../router";
import { csv, download } from "../plot/plot";
import { Share } from "../ui/share";
import { Empty, Icon, StateMark } from "../ui/ui";

export function Compare({ model, view }: { model: Model; view: View }) {
  const { table } = view, all = useSignal(false);
  table.revision.value;
  const numbers = [...view.selected.value].filter((n) => table.row(n) >= 0).slice(0, 20), rows = numbers.map((n) => table.row(n));
  if (rows.length < 2) {
    return <div class="panel"><Empty title="Select two to twenty trials"><p>Tick them in the table, or click their points with Shift, then press <kbd>c</kbd>.</p><a class="button" href={href(pathOf(model.place) + search())}>To the experiment</a></Empty></div>;
  }
  const lines = linesOf(table, rows), same = lines.filter(isSame);
  const shown = all.value ? lines : lines.filter((l) => !same.includes(l));
  return (
    <>
      <div class="page-head">
        <div><h1>Compare {rows.length} trials</h1><p class="sub">{same.length ? `${same.length} parameters are the same in all${all.value ? "" : ", and hidden"}` : "They differ in every parameter"}</p></div>
        <div class="actions">
          {same.length > 0 && <button type="button" class="button" aria-pressed={all.value} onClick={() => (all.value = !all.value)}>{all.value ? "Only what differs" : "Show all"}</button>}
          <Share model={model} view={view} />
          <button type="button" class="button" onClick={() => download("compare.csv", new Blob([csv({ head: ["", ...numbers.map(String)], rows: lines.map((l) => [l.name, ...l.values]) })], { type: "text/csv" }))}><Icon name="download" />CSV</button>
          <a class="button" href={href(pathOf(model.place) + search())}><Icon name="left" />Back</a>
        </div>
      </div>
      <div class="stack">
        <Curves view={view} place={model.place} only={numbers} id="compare" height={360} />
        <section class="panel scroll" tabIndex={0} aria-label="What differs">
          <table class="grid">
            <thead><tr><th scope="col">Trial</th>{numbers.map((n, i) => (
              <th scope="col" class="num" key={n}><span class="swatch" style={{ background: theme.value.series[i % 8] }} /><a class="link" href={href(view.trialPath(n))}>{n}</a></th>
            ))}</tr></thead>
            <tbody>{shown.map((l) => (
              <tr key={l.name}><th scope="row" style={{ position: "static", fontSize: "13px" }}>{l.name}</th>
                {l.cells.map((c, i) => <td key={i} class="num">{l.name === "state" ? <StateMark state={c} /> : l.name === view.objective.value.metric && rows[i] === view.best.value ? <span class="best">{c}</span> : c}</td>)}</tr>
            ))}</tbody>
          </table>
        </section>
      </div>
    </>
  );
}
