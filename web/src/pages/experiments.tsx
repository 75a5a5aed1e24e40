// All experiments of the namespaces that the caller may see.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { dashboard } from "../api/client";
import { watch } from "../api/live";
import type { ExperimentChanges } from "../api/gen/vernier/v1/dashboard_pb";
import type { Experiment } from "../api/gen/vernier/v1/experiment_pb";
import { clock, formatAge, formatDuration, formatValue } from "../data/trials";
import { countsOf, objectivesOf, pathOf, placeOf, seconds, specOf, stateOf } from "../data/experiment";
import { go, href, query, setQuery } from "../router";
import { theme } from "../plot/theme";
import { Empty, Failure, Icon, Skeleton, StateMark } from "../ui/ui";

export function Experiments({ namespace }: { namespace?: string }) {
  const namespaces = useSignal<string[] | null>(null), error = useSignal<unknown>(null), again = useSignal(0);
  const list = useSignal<Map<string, Experiment> | null>(null);
  useEffect(() => {
    dashboard.listNamespaces({}).then((r) => (namespaces.value = r.namespaces.map((n) => n.replace("namespaces/", ""))), (err: unknown) => (error.value = err));
  }, [again.value]);
  const watched = namespace ? (namespaces.value ?? []).filter((n) => n === namespace) : (namespaces.value ?? []).slice(0, 24);
  useEffect(() => {
    if (namespaces.value && watched.length === 0) list.value = new Map();
    list.value = watched.length ? null : list.value;
    const ends = watched.map((ns) => watch({ case: "experiments", value: `namespaces/${ns}` }, (c) => {
      if (c.case !== "experiments") return;
      const { next, fits } = changed(list.peek(), ns, c.value);
      list.value = next;
      return fits;
    }));
    return () => ends.forEach((end) => end());
  }, [watched.join(",")]);
  const find = query.value.get("find") ?? "", state = query.value.get("state") ?? "";
  const rows = useComputed(() => [...(list.value?.values() ?? [])].sort((a, b) => seconds(b.createTime) - seconds(a.createTime)));
  const shown = rows.value.filter((e) => (!find || e.name.toLowerCase().includes(find.toLowerCase()) || e.tags.some((t) => t.includes(find))) && (!state || stateOf(e) === state));
  return (
    <>
      <div class="page-head">
        <div><h1>Experiments</h1>
          <p class="sub">{list.value ? `${rows.value.length} in ${namespace ? `namespace ${namespace}` : `${watched.length} ${watched.length === 1 ? "namespace" : "namespaces"}`}` : " "}</p></div>
        <div class="actions">
          <label class="search" style={{ minWidth: "220px" }}><span class="sr">Find</span><Icon name="search" size={15} />
            <input type="search" placeholder="Find by name or tag" value={find} onInput={(e) => setQuery({ find: e.currentTarget.value })} /></label>
          <label class="select"><span class="sr">State</span>
            <select style={{ height: "30px" }} value={state} onChange={(e) => setQuery({ state: e.currentTarget.value })}>
              <option value="">All states</option>{["running", "paused", "succeeded", "interrupted", "failed"].map((s) => <option key={s} value={s}>{s}</option>)}
            </select></label>
          {(namespaces.value?.length ?? 0) > 1 && (
            <label class="select"><span class="sr">Namespace</span>
              <select style={{ height: "30px" }} value={namespace ?? ""} onChange={(e) => go(e.currentTarget.value ? `/ns/${e.currentTarget.value}` : "/")}>
                <option value="">All namespaces</option>{namespaces.value!.map((n) => <option key={n} value={n}>{n}</option>)}
              </select></label>
          )}
          <a class="button primary" href={href(namespace ? `/new?ns=${namespace}` : "/new")}><Icon name="plus" />New</a>
        </div>
      </div>
      {error.value ? <Failure error={error.value} retry={() => { error.value = null; again.value++; }} />
        : namespace && namespaces.value && !namespaces.value.includes(namespace) ? (
          <div class="panel"><Empty title={`There is no namespace ${namespace} for you`}>
            <p>It does not exist, or no role lets you list its experiments, such as vernier-view.</p><a class="button" href={href("/")}>To the experiments</a>
          </Empty></div>
        ) : !list.value ? <div class="panel"><Skeleton rows={7} /></div>
        : rows.value.length === 0 ? (
          <div class="panel"><Empty title="No experiment yet">
            <p>Create one here, or from the command line:</p>
            <pre>vernier run -f experiment.yaml</pre>
            <a class="button primary" href={href("/new")}><Icon name="plus" />New experiment</a>
          </Empty></div>
        ) : shown.length === 0 ? <div class="panel"><Empty title="None of this name or state"><button type="button" class="button" onClick={() => setQuery({ find: null, state: null })}>Show all</button></Empty></div>
        : (
          <div class="panel scroll">
            <table class="grid rows">
              <thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Trials</th><th scope="col" class="num">Best</th><th scope="col">Objective</th><th scope="col">Algorithm</th><th scope="col" class="num">Left</th><th scope="col" class="num">Age</th></tr></thead>
              <tbody>{shown.map((e) => <Row key={e.name} e={e} many={!namespace && watched.length > 1} />)}</tbody>
            </table>
          </div>
        )}
    </>
  );
}

/**
 * The experiments after a change in a namespace, and whether they are as many as there are.
 * A page that was hidden is not told of those that were deleted meanwhile.
 */
export function changed(before: Map<string, Experiment> | null, namespace: string, c: ExperimentChanges) {
  const next = new Map(before), within = () => [...next.keys()].filter((name) => placeOf(name).namespace === namespace);
  if (c.whole) for (const name of within()) next.delete(name);
  for (const name of c.deleted) next.delete(name);
  for (const e of c.experiments) next.set(e.name, e);
  return { next, fits: within().length === c.total };
}

function Row({ e, many }: { e: Experiment; many: boolean }) {
  const p = placeOf(e.name), all = objectivesOf(e), o = all[0], state = stateOf(e);
  return (
    <tr onDblClick={() => go(pathOf(p))}>
      <td><a class="name" href={href(pathOf(p))}>{p.experiment}</a>{many && <span class="muted"> {p.namespace}</span>}{e.tags.slice(0, 3).map((t) => <> <span class="tag">{t}</span></>)}</td>
      <td title={e.message}><StateMark state={state} /></td>
      <td style={{ minWidth: "200px" }}><Progress e={e} /></td>
      <td class="num" title={all.length > 1 ? `of ${o.metric}` : undefined}>{o && e.best?.values[o.metric] !== undefined ? formatValue(e.best.values[o.metric]) : "–"}</td>
      <td>{all.length ? all.map((o, i) => <span key={o.metric}>{i > 0 && ", "}<span class="muted">{o.maximize ? "max" : "min"}</span> {o.metric}</span>) : "–"}</td>
      <td>{specOf(e).algorithm?.algorithmName ?? "–"}</td>
      <td class="num muted">{state === "running" ? formatDuration(left(e)) : "–"}</td>
      <td class="num muted">{formatAge(seconds(e.createTime))}</td>
    </tr>
  );
}

/** Seconds until the budget is spent, at the pace so far. */
export function left(e: Experiment): number {
  const max = specOf(e).maxTrialCount ?? 0, n = countsOf(e).done, begun = seconds(e.startTime ?? e.createTime);
  if (!max || n < 2) return NaN;
  return ((clock.now() / 1000 - begun) / n) * Math.max(0, max - n);
}

export function Progress({ e, text = true }: { e: Experiment; text?: boolean }) {
  theme.value;
  const max = specOf(e).maxTrialCount ?? 0, total = Math.max(max, e.trials, 1), c = countsOf(e);
  const parts: [string, number, string][] = [["succeeded", c.succeeded, "succeeded"], ["stopped", c.stopped, "pruned"], ["failed", c.failed, "failed"], ["running", c.running, "running"]];
  const said = parts.filter(([, n]) => n).map(([s, n]) => `${n} ${s}`).join(", ") || "none yet";
  return (
    <div style={{ display: "flex", alignItems: "center", gap: "10px" }} title={said}>
      <div class="progress" role="img" aria-label={`${c.done} of ${max || "any number of"} trials done: ${said}`} style={{ flex: 1 }}>
        {parts.map(([s, n, color]) => n > 0 && <i key={s} style={{ width: `${(n / total) * 100}%`, background: `var(--state-${color})` }} />)}
      </div>
      {text && <span class="muted" style={{ minWidth: "76px", textAlign: "right" }}>{c.done.toLocaleString("en")}{max ? ` / ${max.toLocaleString("en")}` : ""}</span>}
    </div>
  );
}
