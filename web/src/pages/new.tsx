// A new experiment. The YAML is what is sent; the form reads it and writes into it,
// so that either may be edited at any time and comments stay.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { isMap, parseDocument, type Document } from "yaml";
import { dashboard, experiments, explain } from "../api/client";
import type { Algorithm, PreviewExperimentResponse } from "../api/gen/vernier/v1/dashboard_pb";
import { pathOf, placeOf } from "../data/experiment";
import { formatDuration, formatValue } from "../data/trials";
import { go, query } from "../router";
import { complain, Icon, say, Segments, Skeleton } from "../ui/ui";
import { editor, type Editor } from "./editor";

const first = `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: my-experiment
spec:
  objective:
    type: minimize
    objectiveMetricName: loss
  algorithm:
    algorithmName: auto
  parallelTrialCount: 4
  maxTrialCount: 40
  parameters:
    - name: lr
      parameterType: double
      feasibleSpace: {min: "0.0001", max: "0.1", distribution: logUniform}
    - name: layers
      parameterType: int
      feasibleSpace: {min: "1", max: "8"}
  # Without a trialTemplate programs ask for the trials themselves: see docs/api.md.
`;

type Path = (string | number)[];

export function New() {
  const text = useSignal(""), ready = useSignal(false), tab = useSignal<"form" | "yaml">("form");
  const namespaces = useSignal<string[]>([]), namespace = useSignal(query.peek().get("ns") ?? "");
  const preview = useSignal<PreviewExperimentResponse | null>(null), failed = useSignal(""), busy = useSignal(false);
  const algorithms = useSignal<Algorithm[]>([]), rules = useSignal<Algorithm[]>([]);
  const doc = useComputed<Document>(() => parseDocument(text.value));
  const from = query.peek().get("from");
  useEffect(() => {
    dashboard.listNamespaces({}).then((r) => {
      namespaces.value = r.namespaces.map((n) => n.replace("namespaces/", ""));
      namespace.value ||= from ? placeOf(from).namespace : namespaces.value.includes("default") ? "default" : (namespaces.value[0] ?? "default");
    }, complain);
    dashboard.listAlgorithms({}).then((r) => { algorithms.value = r.algorithms; rules.value = r.stoppingRules; }, () => {});
    if (!from) {
      text.value = first;
      ready.value = true;
      return;
    }
    dashboard.describe({ name: from }).then((d) => { text.value = cloned(d.yaml); ready.value = true; }, (err: unknown) => { complain(err); text.value = first; ready.value = true; });
  }, []);

  useEffect(() => {
    if (!ready.value || !namespace.value) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      dashboard.previewExperiment({ yaml: text.value, parent: `namespaces/${namespace.value}`, samples: 5 }, { signal: stop.signal }).then(
        (r) => { preview.value = r; failed.value = ""; },
        (err: unknown) => { if (!stop.signal.aborted) { preview.value = null; failed.value = explain(err).text; } },
      );
    }, 500);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text.value, namespace.value, ready.value]);

  const get = (path: Path): unknown => { const v = doc.value.getIn(path); return isMap(v) ? v.toJSON() : v; };
  const put = (path: Path, v: unknown) => { text.value = edited(text.value, path, v); };
  const problem = (field: string) => preview.value?.problems.find((p) => p.field === field)?.message;
  const create = async () => {
    busy.value = true;
    try {
      const e = await experiments.createExperiment({ yaml: text.value, parent: `namespaces/${namespace.value}` });
      say(["Created.", ...e.warnings].join(" "));
      go(pathOf(placeOf(e.name)));
    } catch (err) {
      complain(err);
    } finally {
      busy.value = false;
    }
  };
  if (!ready.value) return <div class="panel"><Skeleton rows={9} /></div>;
  const field = (title: string, path: Path, kind: "text" | "number" = "text", hint = "") => {
    const said = problem(path.slice().join("."));
    return (
      <label class="field"><span>{title}</span>
        <input type={kind as "text"} value={String(get(path) ?? "")} aria-invalid={!!said} onChange={(e) => put(path, kind === "number" && e.currentTarget.value !== "" ? Number(e.currentTarget.value) : e.currentTarget.value)} />
        {(said || hint) && <small class={said ? "bad" : ""}>{said || hint}</small>}
      </label>
    );
  };
  const choice = (title: string, path: Path, options: string[], none = "") => (
    <label class="field"><span>{title}</span>
      <select value={String(get(path) ?? "")} onChange={(e) => put(path, e.currentTarget.value)}>
        {none && <option value="">{none}</option>}
        {[...new Set([String(get(path) ?? ""), ...options])].filter(Boolean).map((o) => <option key={o} value={o}>{o}</option>)}
      </select></label>
  );
  const broken = doc.value.errors[0];
  const setting = algorithms.value.find((a) => a.name === get(["spec", "algorithm", "algorithmName"]));
  return (
    <>
      <div class="page-head">
        <div><h1>{from ? `Clone ${placeOf(from).experiment}` : "New experiment"}</h1><p class="sub">The form and the YAML are the same text. It is checked while you write.</p></div>
        <div class="actions">
          <label class="select"><span class="sr">Namespace</span><select style={{ height: "30px" }} value={namespace.value} onChange={(e) => (namespace.value = e.currentTarget.value)}>
            {[...new Set([namespace.value, ...namespaces.value])].filter(Boolean).map((n) => <option key={n} value={n}>{n}</option>)}</select></label>
          <button type="button" class="button primary" disabled={busy.value || !!broken || (preview.value?.problems.length ?? 0) > 0} onClick={create}>Create</button>
        </div>
      </div>
      <div class="split" style={{ gridTemplateColumns: "minmax(0, 1fr) minmax(300px, 420px)" }}>
        <section class="panel" aria-label="Definition">
          <header class="panel-head"><Segments label="Edit as" value={tab.value} options={[["form", "Form"], ["yaml", "YAML"]]} set={(v) => (tab.value = v)} />
            {broken && <span class="note bad">line {broken.linePos?.[0].line}: {broken.message.split("\n")[0]}</span>}</header>
          {tab.value === "yaml" ? <Yaml text={text.value} change={(t) => (text.value = t)} /> : broken ? <p class="pad">The YAML cannot be read. <button type="button" class="button" onClick={() => (tab.value = "yaml")}>Edit it</button></p> : (
            <div class="form">
              <div class="fields">
                {field("Name", ["metadata", "name"])}
                {get(["spec", "objectives"]) === undefined && field("Objective metric", ["spec", "objective", "objectiveMetricName"])}
                {get(["spec", "objectives"]) === undefined && choice("Direction", ["spec", "objective", "type"], ["minimize", "maximize"])}
                {get(["spec", "objectives"]) === undefined && field("Goal", ["spec", "objective", "goal"], "number", "It ends when a trial reaches it.")}
                {choice("Algorithm", ["spec", "algorithm", "algorithmName"], algorithms.value.map((a) => a.name))}
                {choice("Stop bad trials early", ["spec", "earlyStopping", "algorithmName"], rules.value.map((a) => a.name), "no")}
                {field("Trials in all", ["spec", "maxTrialCount"], "number")}
                {field("At once", ["spec", "parallelTrialCount"], "number")}
                {field("Failed at most", ["spec", "maxFailedTrialCount"], "number")}
              </div>
              {setting && <p class="muted">{setting.title}</p>}
              <fieldset><legend>Parameters</legend><Parameters get={get} put={put} problems={preview.value} /></fieldset>
              <p class="muted">{get(["spec", "trialTemplate"]) ? "The template of its jobs is in the YAML." : "It has no trialTemplate: programs ask for its trials and tell what came of them."} <button type="button" class="button small" onClick={() => (tab.value = "yaml")}>Edit the YAML</button></p>
            </div>
          )}
        </section>
        <Check r={preview.value} failed={failed.value} trials={Number(get(["spec", "maxTrialCount"]) ?? 0)} template={get(["spec", "trialTemplate"])} />
      </div>
    </>
  );
}

function Parameters({ get, put, problems }: { get: (p: Path) => unknown; put: (p: Path, v: unknown) => void; problems: PreviewExperimentResponse | null }) {
  const list = get(["spec", "parameters"]) as { items?: unknown[] } | undefined, n = list?.items?.length ?? 0;
  const at = (i: number, ...rest: Path) => ["spec", "parameters", i, ...rest];
  const input = (i: number, label: string, path: Path, title: string) => (
    <input type="text" aria-label={`${label} of parameter ${i + 1}`} placeholder={title} value={String(get(path) ?? "")} onChange={(e) => put(path, e.currentTarget.value)} />
  );
  return (
    <div class="params">
      {Array.from({ length: n }, (_, i) => {
        const kind = String(get(at(i, "parameterType")) ?? "double"), said = problems?.problems.find((p) => p.field.startsWith(`spec.parameters[${i}]`));
        const values = get(at(i, "feasibleSpace", "list")) as { toJSON?: () => string[] } | string[] | undefined;
        const words = Array.isArray(values) ? values : (values?.toJSON?.() ?? []);
        return (
          <div key={i}>
            <div class="param">
              {input(i, "Name", at(i, "name"), "name")}
              <select aria-label={`Type of parameter ${i + 1}`} value={kind} onChange={(e) => put(at(i, "parameterType"), e.currentTarget.value)}>{["double", "int", "discrete", "categorical"].map((k) => <option key={k} value={k}>{k}</option>)}</select>
              {kind === "double" || kind === "int" ? (
                <>
                  {input(i, "Least value", at(i, "feasibleSpace", "min"), "min")}
                  {input(i, "Greatest value", at(i, "feasibleSpace", "max"), "max")}
                  <select aria-label={`Scale of parameter ${i + 1}`} value={String(get(at(i, "feasibleSpace", "distribution")) ?? "uniform")} onChange={(e) => put(at(i, "feasibleSpace", "distribution"), e.currentTarget.value === "uniform" ? undefined : e.currentTarget.value)}>{["uniform", "logUniform", "normal", "logNormal"].map((k) => <option key={k} value={k}>{k}</option>)}</select>
                </>
              ) : <input style={{ gridColumn: "span 3" }} type="text" aria-label={`Values of parameter ${i + 1}`} placeholder="values, with commas" value={words.join(", ")} onChange={(e) => put(at(i, "feasibleSpace", "list"), e.currentTarget.value.split(",").map((w) => w.trim()).filter(Boolean))} />}
              <button type="button" class="icon-button" aria-label={`Remove parameter ${i + 1}`} onClick={() => put(at(i), undefined)}><Icon name="trash" /></button>
            </div>
            {said && <small class="bad">{said.message}</small>}
          </div>
        );
      })}
      <div><button type="button" class="button small" onClick={() => put(["spec", "parameters", n], { name: `parameter${n + 1}`, parameterType: "double", feasibleSpace: { min: "0", max: "1" } })}><Icon name="plus" size={14} />Parameter</button></div>
    </div>
  );
}

/** What the server says about it: problems, points that would be tried first, an estimate. */
function Check({ r, failed, trials, template }: { r: PreviewExperimentResponse | null; failed: string; trials: number; template: unknown }) {
  if (!r) return <section class="panel pad muted" aria-label="Check">{failed ? <span class="bad">{failed}</span> : "Checking…"}</section>;
  const limit = r.maxTrialDuration ? Number(r.maxTrialDuration.seconds) : 0, gpus = countGpus(template);
  const names = [...new Set(r.samples.flatMap((s) => Object.keys(s)))];
  return (
    <div class="stack">
      <section class="panel" aria-label="Check" aria-live="polite">
        <header class="panel-head"><h2>Check</h2><span class={r.problems.length ? "bad" : "good"}>{r.problems.length ? `${r.problems.length} to put right` : "It can be created"}</span></header>
        {(r.problems.length > 0 || r.warnings.length > 0) && (
          <ul class="events">
            {r.problems.map((p, i) => <li key={i} style={{ gridTemplateColumns: "18px 1fr" }}><span class="bad"><Icon name="warn" /></span><div>{p.field && <><code>{p.field}</code><br /></>}{p.message}</div></li>)}
            {r.warnings.map((w) => <li key={w} style={{ gridTemplateColumns: "18px 1fr" }}><Icon name="info" /><div>{w}</div></li>)}
          </ul>
        )}
        <table class="grid"><tbody>
          <tr><td class="muted">Points in the space</td><td class="num">{r.size ? r.size.toLocaleString("en") : "infinitely many"}</td></tr>
          {limit > 0 && trials > 0 && <tr><td class="muted">All trials, at most</td><td class="num">{formatDuration(limit * trials)} of trials</td></tr>}
          {gpus > 0 && trials > 0 && <tr><td class="muted">GPU hours</td><td class="num">{limit ? `at most ${formatValue((gpus * limit * trials) / 3600)}` : `${gpus * trials} for each hour that a trial takes`}</td></tr>}
        </tbody></table>
      </section>
      {r.samples.length > 0 && (
        <section class="panel" aria-label="First points"><header class="panel-head"><h2>First points</h2><span class="note">what the algorithm would try</span></header>
          <div class="scroll" tabIndex={0} aria-label="First points"><table class="grid"><thead><tr>{names.map((n) => <th scope="col" class="num" key={n}>{n}</th>)}</tr></thead>
            <tbody>{r.samples.map((s, i) => <tr key={i}>{names.map((n) => { const v = s[n]; return <td class="num" key={n}>{typeof v === "number" ? formatValue(v) : String(v ?? "–")}</td>; })}</tr>)}</tbody></table></div>
        </section>
      )}
    </div>
  );
}

/** How many GPUs a trial with this template holds at a time, as far as numbers say. */
export function countGpus(v: unknown): number {
  if (!v || typeof v !== "object") return 0;
  if (Array.isArray(v)) return v.reduce((n: number, x) => n + countGpus(x), 0);
  const o = v as Record<string, unknown>;
  let n = 0;
  for (const [key, x] of Object.entries(o)) {
    if (key === "initContainers") continue; // they end before the others begin
    if (key === "limits" && x && typeof x === "object") {
      for (const [name, count] of Object.entries(x)) if (/gpu$/i.test(name)) n += Number(count) || 0;
    } else n += countGpus(x);
  }
  // Of a replica, of a pod of a Job, of a node of a TrainJob.
  const times = Number(o.replicas ?? o.parallelism ?? o.numNodes ?? 1);
  return Number.isFinite(times) ? n * times : n;
}

/** The YAML with another value, or without it: where no rule is named, without its settings too. */
export function edited(yaml: string, path: Path, v: unknown): string {
  const d = parseDocument(yaml);
  if (v !== "" && v !== undefined) d.setIn(path, v);
  else d.deleteIn(path.at(-2) === "earlyStopping" ? path.slice(0, -1) : path);
  return d.toString({ lineWidth: 100 });
}

// Annotations about what became of an experiment: a clone with the first would end at once.
const past = ["end", "interrupted", "alerts-sent", "origin"].map((name) => `vernier.ml/${name}`);

/** The YAML of another experiment as one that can be created: without what is its own. */
export function cloned(yaml: string): string {
  const d = parseDocument(yaml);
  for (const name of past) if (d.hasIn(["metadata", "annotations", name])) d.deleteIn(["metadata", "annotations", name]);
  for (const key of ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers", "namespace", "ownerReferences"]) d.deleteIn(["metadata", key]);
  d.delete("status");
  const name = String(d.getIn(["metadata", "name"]) ?? "experiment"), m = /^(.*)-(\d+)$/.exec(name);
  d.setIn(["metadata", "name"], m ? `${m[1]}-${Number(m[2]) + 1}` : `${name}-2`);
  return d.toString({ lineWidth: 100 });
}

function Yaml({ text, change }: { text: string; change: (t: string) => void }) {
  const box = useRef<HTMLDivElement>(null), made = useRef<Editor | null>(null);
  useEffect(() => {
    let gone = false;
    void editor(box.current!, text, change).then((e) => (gone ? e.destroy() : (made.current = e)));
    return () => { gone = true; made.current?.destroy(); };
  }, []);
  return <div class="pad"><div class="editor" ref={box} /></div>;
}
