// What runs and what waits, over all experiments that the caller may see.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { dashboard, experiments, explain } from "../api/client";
import { watch } from "../api/live";
import type { Algorithm, GetServerResponse } from "../api/gen/vernier/v1/dashboard_pb";
import { Trial_State, type Experiment, type Trial } from "../api/gen/vernier/v1/experiment_pb";
import { pathOf, placeOf, specOf, stateOf, trialPathOf } from "../data/experiment";
import { DevicesPanel } from "../panels/devices";
import { href } from "../router";
import { Failure, Skeleton, StateMark } from "../ui/ui";
import { Progress } from "./experiments";

export function Cluster() {
  const server = useSignal<GetServerResponse | null>(null), algorithms = useSignal<Algorithm[]>([]), error = useSignal<unknown>(null);
  const all = useSignal<Map<string, Experiment> | null>(null);
  useEffect(() => {
    let ends: (() => void)[] = [], closed = false;
    dashboard.getServer({}).then((s) => (server.value = s), (err: unknown) => (error.value = err));
    dashboard.listAlgorithms({}).then((a) => (algorithms.value = a.algorithms), () => {});
    dashboard.listNamespaces({}).then((r) => {
      if (closed) return;
      all.value = new Map();
      ends = r.namespaces.slice(0, 24).map((ns) => watch({ case: "experiments", value: ns }, (c) => {
        if (c.case !== "experiments") return;
        const next = new Map(all.peek());
        for (const name of c.value.deleted) next.delete(name);
        for (const e of c.value.experiments) next.set(e.name, e);
        all.value = next;
      }));
    }, (err: unknown) => (error.value = err));
    return () => { closed = true; ends.forEach((e) => e()); };
  }, []);
  if (error.value) return <Failure error={error.value} retry={() => location.reload()} />;
  if (!all.value) return <div class="panel"><Skeleton /></div>;
  const list = [...all.value.values()], active = list.filter((e) => ["running", "paused"].includes(stateOf(e)));
  const sum = (f: (e: Experiment) => number) => list.reduce((a, e) => a + f(e), 0).toLocaleString("en");
  const failing = list.filter((e) => stateOf(e) === "failed" || e.trialsFailed > 0).sort((a, b) => b.trialsFailed - a.trialsFailed).slice(0, 12);
  return (
    <>
      <div class="page-head"><div><h1>Cluster</h1><p class="sub">{server.value && `Vernier ${server.value.version}, as ${server.value.user}`}</p></div></div>
      <dl class="panel stats">
        <div><dt>Experiments running</dt><dd>{active.filter((e) => stateOf(e) === "running").length}</dd></div>
        <div><dt>Trials running</dt><dd>{sum((e) => e.trialsRunning)}</dd></div>
        <div><dt>Pending</dt><dd>{sum((e) => e.trialsPending)}</dd></div>
        <div><dt>Queued points</dt><dd>{sum((e) => e.queued.length)}</dd></div>
        <div><dt>Trials in all</dt><dd>{sum((e) => e.trials)}</dd></div>
        <div><dt>Failed</dt><dd>{sum((e) => e.trialsFailed)}</dd></div>
      </dl>
      <div class="panels">
        <section class="panel" aria-label="At work"><header class="panel-head"><h2>At work</h2></header>
          {active.length === 0 ? <p class="note pad">Nothing runs.</p> : (
            <table class="grid"><thead><tr><th scope="col">Experiment</th><th scope="col">State</th><th scope="col" class="num">Running</th><th scope="col">Trials</th></tr></thead>
              <tbody>{active.map((e) => <tr key={e.name}><td><a class="name" href={href(pathOf(placeOf(e.name)))}>{placeOf(e.name).experiment}</a> <span class="muted">{placeOf(e.name).namespace}</span></td><td><StateMark state={stateOf(e)} /></td>
                <td class="num">{e.trialsRunning} <span class="muted">of {specOf(e).parallelTrialCount}</span></td><td style={{ minWidth: "180px" }}><Progress e={e} /></td></tr>)}</tbody></table>
          )}
        </section>
        <section class="panel" aria-label="Failures"><header class="panel-head"><h2>Failures</h2></header>
          {failing.length === 0 ? <p class="note pad">None.</p> : (
            <table class="grid"><thead><tr><th scope="col">Experiment</th><th scope="col" class="num">Failed trials</th><th scope="col">Last error</th></tr></thead>
              <tbody>{failing.map((e) => <tr key={e.name}><td><a class="name" href={href(`${pathOf(placeOf(e.name))}/trials?q=state%3Dfailed`)}>{placeOf(e.name).experiment}</a></td><td class="num">{e.trialsFailed}</td><td class="wrap muted"><LastError e={e} /></td></tr>)}</tbody></table>
          )}
        </section>
        <DevicesPanel />
        <section class="panel wide" aria-label="Algorithms"><header class="panel-head"><h2>Algorithms</h2><span class="note">all run in the manager: no pods</span></header>
          {algorithms.value.length === 0 ? <p class="note pad">The server does not list them.</p> : (
            <table class="grid"><tbody>{algorithms.value.map((a) => <tr key={a.name}><td class="name" style={{ width: "180px" }}>{a.name}</td><td class="wrap muted">{a.title}</td></tr>)}</tbody></table>
          )}
        </section>
      </div>
    </>
  );
}

/** Of the newest trial that failed; without one, why the experiment did. */
function LastError({ e }: { e: Experiment }) {
  const last = useSignal<Trial | null>(null), fault = useSignal("");
  useEffect(() => {
    if (e.trialsFailed === 0) return;
    experiments.listTrials({ parent: e.name, states: [Trial_State.FAILED], newestFirst: true, pageSize: 1 }).then((r) => ((last.value = r.trials[0] ?? null), (fault.value = "")), (err: unknown) => (fault.value = explain(err).text));
  }, [e.name, e.trialsFailed]);
  const t = last.value;
  if (!t) return <>{fault.value || (stateOf(e) === "failed" ? e.message : "")}</>;
  return <><div><a class="link" href={href(trialPathOf(t.name))}>trial {t.number}</a></div>{t.message}</>;
}
