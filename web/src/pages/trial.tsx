// A trial: what it tried, how that differs from the best, how it went, why it is as
// it is, and what it wrote.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { dashboard, experiments, shared } from "../api/client";
import type { DescribeResponse, ListArtifactsResponse } from "../api/gen/vernier/v1/dashboard_pb";
import { readLog } from "../data/log";
import type { Trial } from "../api/gen/vernier/v1/experiment_pb";
import { nameOf, pathOf, seconds, specOf, type Model } from "../data/experiment";
import { boundText, formatAge, formatBytes, formatDuration, formatValue, isLive } from "../data/trials";
import type { View } from "../data/view";
import { Curves, isUsage } from "../panels/curves";
import { download } from "../plot/plot";
import { href } from "../router";
import { awake } from "../data/awake";
import { complain, Empty, Failure, Icon, say, Skeleton, StateMark } from "../ui/ui";
import { Conditions, Events } from "./definition";

export function TrialPage({ model, view, name }: { model: Model; view: View; name: string }) {
  const { table } = view;
  table.revision.value;
  const number = Number(name.slice(name.lastIndexOf("-") + 1)), row = table.row(number);
  const trial = useSignal<Trial | null>(null), about = useSignal<DescribeResponse | null>(null), tab = useSignal("logs");
  const full = `${nameOf(model.place)}/trials/${name}`;
  const state = row < 0 ? 0 : table.state[row];
  useEffect(() => {
    const stop = new AbortController();
    experiments.getTrial({ name: full }, { signal: stop.signal }).then((t) => (trial.value = t), () => {});
    const describe = () => dashboard.describe({ name: full }, { signal: stop.signal }).then((d) => (about.value = d), () => {});
    void describe();
    // Pods, events and metrics come while it runs.
    const again = setInterval(() => isLive(state) && awake.peek() && describe(), 15_000);
    return () => { stop.abort(); clearInterval(again); };
  }, [full, state]);
  if (row < 0 && model.loaded.value) return <Empty title={`There is no trial ${name}`}><a class="button" href={href(pathOf(model.place))}>To the experiment</a></Empty>;
  if (row < 0) return <div class="panel"><Skeleton rows={8} /></div>;
  const machine = (about.value?.metrics ?? []).filter(isUsage).sort((a, b) => rankOf(a) - rankOf(b) || a.localeCompare(b, "en", { numeric: true }));
  const heirs = Array.from(table.number.subarray(0, table.count)).filter((_, i) => table.parent[i] === number).sort((a, b) => a - b);
  const best = view.best.value, o = view.objective.value, broken = table.broken(row);
  const act = (what: Promise<unknown>, done: string) => what.then(() => { say(done); model.refresh(); }, complain);
  const beside = (step: number) => {
    const numbers = Array.from(table.number.subarray(0, table.count)).sort((a, b) => a - b), at = numbers.indexOf(number) + step;
    return at >= 0 && at < numbers.length ? numbers[at] : null;
  };
  const link = (n: number | null, text: string, icon?: string) => n !== null && <a class="button" href={href(view.trialPath(n))}>{icon && <Icon name={icon} />}{text}</a>;
  const t = trial.value;
  return (
    <>
      <div class="page-head">
        <div><h1>Trial {number}</h1>
          <p class="sub"><StateMark state={state} /> {table.message[row] && <>· {table.message[row]}</>}</p></div>
        <div class="actions">
          {link(beside(-1), "Before", "left")}
          {link(beside(1), "Next")}
          {row !== best && best >= 0 && <a class="button" href={href(`${pathOf(model.place)}/compare?s=${number},${table.number[best]}`)}><Icon name="compare" />Compare to the best</a>}
          {shared ? null : <button type="button" class="button" onClick={() => act(experiments.rerunTrial({ name: full, requestId: crypto.randomUUID() }), "The point is queued once more.")}><Icon name="rerun" />Rerun</button>}
          {!shared && isLive(state) && <button type="button" class="button danger" onClick={() => act(experiments.stopTrial({ name: full }), "The trial was asked to stop.")}><Icon name="stop" />Stop</button>}
        </div>
      </div>
      <div class="split">
        <div class="stack">
          <section class="panel" aria-label="Results"><header class="panel-head"><h2>Results</h2></header>
            <table class="grid"><thead><tr><th scope="col">Metric</th><th scope="col" class="num">Value</th><th scope="col" class="num">To the best</th></tr></thead>
              <tbody>{[...table.metrics.keys()].map((m) => {
                const v = table.metrics.get(m)![row], b = best < 0 ? NaN : table.metrics.get(m)![best];
                return <tr key={m}><td>{m} {table.strategies.has(m) && <small class="muted">{table.strategies.get(m)}</small>}</td><td class={`num${row === best && m === o.metric ? " best" : ""}${m === broken?.metric ? " bad" : ""}`}>{formatValue(v)}{m === broken?.metric && " !"}</td><td class="num muted">{row === best ? "best" : signed(v - b)}</td></tr>;
              })}</tbody></table>
            {table.divergence(row) && <p class="note pad bad">{table.divergence(row)}</p>}
            {broken && <p class="note pad">It breaks the bound {boundText(broken)}, so it is never the best.</p>}
          </section>
          <section class="panel" aria-label="Parameters"><header class="panel-head"><h2>Parameters</h2>{best >= 0 && row !== best && <span class="note">beside the best, trial {table.number[best]}</span>}</header>
            <table class="grid"><thead><tr><th scope="col">Name</th><th scope="col" class="num">Value</th>{best >= 0 && row !== best && <th scope="col" class="num">Best</th>}</tr></thead>
              <tbody>{table.specs.map((s) => {
                const of = table.params.get(s.name)!, v = table.text(s, of[row]), b = best < 0 ? "" : table.text(s, of[best]), same = best < 0 || Object.is(of[row], of[best]);
                return <tr key={s.name}><td>{s.name}</td><td class="num" style={{ fontWeight: same ? 400 : 600 }}>{v || "–"}</td>{best >= 0 && row !== best && <td class="num muted">{same ? "same" : b || "–"}</td>}</tr>;
              })}</tbody></table>
            {t?.why && <p class="note pad">Why this point: {t.why}</p>}
          </section>
          <section class="panel" aria-label="Course"><header class="panel-head"><h2>Course</h2></header>
            <table class="grid"><tbody>
              <tr><td class="muted">Created</td><td class="num">{formatAge(table.created[row])} ago</td></tr>
              <tr><td class="muted">Duration</td><td class="num">{formatDuration(table.duration(row))}</td></tr>
              {t && t.attempt > 0 && <tr><td class="muted">Attempt</td><td class="num">{t.attempt}</td></tr>}
              {t?.worker && <tr><td class="muted">Worker</td><td class="num">{t.worker}</td></tr>}
              {table.resource[row] > 0 && <tr><td class="muted">Resource</td><td class="num">{formatValue(table.resource[row])}</td></tr>}
              {table.parent[row] >= 0 && <tr><td class="muted">Continues</td><td class="num"><a class="link" href={href(view.trialPath(table.parent[row]))}>trial {table.parent[row]}</a></td></tr>}
              {heirs.length > 0 && <tr><td class="muted">Continued by</td><td class="num wrap">{heirs.slice(0, 20).map((n, i) => <>{i > 0 && ", "}<a key={n} class="link" href={href(view.trialPath(n))}>trial {n}</a></>)}{heirs.length > 20 && ` and ${heirs.length - 20} more`}</td></tr>}
              {about.value?.pods.map((p) => <tr key={p.name}><td class="muted">Pod</td><td class="num wrap" title={p.message}>{p.name}<br /><span class="muted">{p.phase} on {p.node || "no node yet"}{Object.entries(p.resources).map(([k, v]) => `, ${k} ${v}`)}</span></td></tr>)}
            </tbody></table>
          </section>
        </div>
        <div class="stack">
          {about.value?.why && about.value.why !== table.message[row] && <div class={`banner${state === 6 ? " bad" : ""}`}><Icon name={state === 6 ? "warn" : "info"} /><span>{about.value.why}</span></div>}
          <Curves view={view} place={model.place} only={[number]} id={`curve-${number}`} height={300} more={about.value?.metrics.filter((m) => !isUsage(m))} />
          {machine.length > 0 && <Curves view={view} place={model.place} only={[number]} id={`machine-${number}`} height={200} machine={machine} />}
          {shared ? null : <section class="panel">
            <nav class="tabs" style={{ margin: 0, padding: "0 16px" }} aria-label="About the trial">
              {[["logs", "Logs"], ["files", "Files"], ["events", "Conditions and events"], ["yaml", "YAML"]].map(([k, text]) => (
                <a key={k} href={"#" + k} aria-current={tab.value === k ? "page" : undefined} onClick={(e) => { e.preventDefault(); tab.value = k; }}>{text}</a>
              ))}
            </nav>
            {tab.value === "logs" && !specOf(model.experiment.value!).trialTemplate ? <p class="note pad">No job runs this trial, so its output is not here: look where {t?.worker ? `its worker ${t.worker}` : "the program that runs it"} writes it.</p>
              : tab.value === "logs" ? <Logs name={full} about={about.value} live={isLive(state)} key={full} />
              : tab.value === "files" ? <Files name={full} state={state} />
              : !about.value ? <Skeleton rows={5} />
              : tab.value === "yaml" ? <pre class="code" tabIndex={0} aria-label="YAML">{about.value.yaml}</pre>
              : <><Conditions all={about.value.conditions} /><Events all={about.value.events} /></>}
          </section>}
        </div>
      </div>
    </>
  );
}

// GPUs come first.
const rankOf = (metric: string) => (metric.endsWith("utilization_percent") ? 0 : metric.startsWith("system/gpu") ? 1 : 2);

/** What a trial wrote that is not a metric: checkpoints, models, pictures. */
function Files({ name, state }: { name: string; state: number }) {
  const list = useSignal<ListArtifactsResponse | null>(null), error = useSignal<unknown>(null), busy = useSignal("");
  const read = () => dashboard.listArtifacts({ name }).then((l) => (list.value = l), (err: unknown) => (error.value = err));
  useEffect(() => { void read(); }, [name, state]);
  const save = async (path: string) => {
    busy.value = path;
    try {
      const parts: BlobPart[] = [];
      for await (const m of dashboard.readArtifact({ name, path }, { timeoutMs: 0 })) parts.push(m.data as BlobPart);
      download(path.slice(path.lastIndexOf("/") + 1), new Blob(parts));
    } catch (err) {
      complain(err);
    } finally {
      busy.value = "";
    }
  };
  if (error.value) return <Failure error={error.value} />;
  const l = list.value;
  if (!l) return <Skeleton rows={4} />;
  return (
    <>
      <div class="panel-head" style={{ paddingLeft: "16px" }}>
        <span class="note" title={l.place}>{l.artifacts.length === 1 ? "1 file" : `${l.artifacts.length.toLocaleString("en")} files`}</span>
        <div class="panel-tools">
          {l.place && <button type="button" class="icon-button" aria-label="Copy where the files are" title="Copy where the files are" onClick={() => navigator.clipboard?.writeText(l.place).then(() => say("Copied."))}><Icon name="copy" /></button>}
          <button type="button" class="button small" onClick={read}>Read again</button>
        </div>
      </div>
      {l.artifacts.length > 0 && (
        <div class="scroll" style={{ maxHeight: "420px" }} tabIndex={0} role="region" aria-label="Files">
          <table class="grid"><thead><tr><th scope="col">File</th><th scope="col" class="num">Size</th><th scope="col" class="num">Written</th><th scope="col"><span class="sr">Save</span></th></tr></thead>
            <tbody>{l.artifacts.map((a) => (
              <tr key={a.path}><td class="wrap">{a.path}</td><td class="num">{formatBytes(Number(a.size))}</td><td class="num muted" title={new Date(seconds(a.modifyTime) * 1000).toLocaleString("en")}>{formatAge(seconds(a.modifyTime))} ago</td>
                <td class="num"><button type="button" class="icon-button" disabled={busy.value !== ""} aria-label={`Save ${a.path}`} title="Save" onClick={() => save(a.path)}><Icon name="download" /></button></td></tr>
            ))}</tbody></table>
        </div>
      )}
      {(l.note || l.place) && <p class="note pad">{l.note} {l.place && <>They are in <code>{l.place}</code>.</>}</p>}
    </>
  );
}

const signed = (d: number) => (Number.isNaN(d) ? "–" : (d > 0 ? "+" : "") + formatValue(d));

/** What a trial writes, while it writes it. It stays at the end only where one is at the end. */
function Logs({ name, about, live }: { name: string; about: DescribeResponse | null; live: boolean }) {
  const text = useSignal(""), note = useSignal(""), find = useSignal(""), follow = useSignal(true), where = useSignal(""), previous = useSignal(false);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const [pod = "", container = ""] = where.value.split(" "), follow = live && !previous.value;
    text.value = note.value = "";
    return readLog({ name, pod, container, follow, previous: previous.value, tail: 2000 }, follow, (t) => (text.value = t), (n) => (note.value = n));
  }, [name, where.value, live, previous.value]);
  useEffect(() => {
    if (follow.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text.value, follow.value]);
  const places = (about?.pods ?? []).flatMap((p) => p.containers.map((c) => `${p.name} ${c.name}`));
  const restarted = (about?.pods ?? []).some((p) => p.containers.some((c) => c.restarts > 0));
  const plain = text.value.replace(/\x1b\[[0-9;]*[A-Za-z]/g, "");
  const lines = find.value ? plain.split("\n").filter((l) => l.toLowerCase().includes(find.value.toLowerCase())) : null;
  return (
    <>
      <div class="panel-head" style={{ paddingLeft: "16px" }}>
        <label class="search" style={{ minWidth: "200px", maxWidth: "280px" }}><span class="sr">Search the logs</span><Icon name="search" size={15} /><input type="search" placeholder="Only lines with" value={find.value} onInput={(e) => (find.value = e.currentTarget.value)} /></label>
        {places.length > 1 && <label class="select"><span class="sr">Container</span><select value={where.value} onChange={(e) => (where.value = e.currentTarget.value)}><option value="">primary container</option>{places.map((p) => <option key={p} value={p}>{p}</option>)}</select></label>}
        <span class="note">{lines ? `${lines.length} lines` : plain && note.value}</span>
        <div class="panel-tools">
          {(restarted || previous.value) && <button type="button" class="button small" aria-pressed={previous.value} title="What was written before the last restart" onClick={() => (previous.value = !previous.value)}>Run before</button>}
          <button type="button" class="button small" aria-pressed={follow.value} onClick={() => (follow.value = !follow.value)}>{follow.value ? "Following" : "Follow"}</button></div>
      </div>
      <pre class="log" ref={box} tabIndex={0} role="log" aria-live="off" aria-label="Logs"
        onScroll={(e) => { const b = e.currentTarget; const end = b.scrollHeight - b.scrollTop - b.clientHeight < 24; if (end !== follow.value) follow.value = end; }}>
        {lines ? lines.join("\n") : plain || <span class="muted">{note.value || (live ? "Nothing was written yet." : "Reading…")}</span>}
      </pre>
    </>
  );
}

