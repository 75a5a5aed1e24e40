// An experiment: its head and its tabs. All its pages share one model.
import { useEffect, useMemo } from "preact/hooks";
import { countsOf, Model, objectivesOf, pathOf, seconds, specOf, stateOf } from "../data/experiment";
import type { View } from "../data/view";
import { boundText, formatAge, formatDuration, formatValue } from "../data/trials";
import type { Experiment } from "../api/gen/vernier/v1/experiment_pb";
import { lazy } from "../lazy";
import { Curves } from "../panels/curves";
import { FilterBar } from "../panels/filter";
import { History } from "../panels/history";
import { Parallel } from "../panels/parallel";
import { Trials } from "../panels/table";
import { href, search } from "../router";
import { shared } from "../api/client";
import { Empty, Failure, Icon, Skeleton, StateMark } from "../ui/ui";
import { left, Progress } from "./experiments";

const Analysis = lazy(() => import("./analysis").then((m) => m.Analysis));
const Steering = lazy(() => import("./steering").then((m) => m.Steering));
const Definition = lazy(() => import("./definition").then((m) => m.Definition));
const Trial = lazy(() => import("./trial").then((m) => m.TrialPage));
const Compare = lazy(() => import("./compare").then((m) => m.Compare));

interface Props { namespace: string; experiment: string; part: string; trial: string }

export function ExperimentPages({ namespace, experiment, part, trial }: Props) {
  const model = useMemo(() => new Model({ namespace, experiment }), []);
  useEffect(() => {
    const before = document.title;
    return () => { model.close(); document.title = before; };
  }, []);
  const e = model.experiment.value, view = model.view;
  document.title = `${experiment} · Vernier`;
  if (model.error.value && !e) return <Failure error={model.error.value} retry={() => location.reload()} />;
  if (!e || !view) return <div class="panel"><Skeleton rows={10} /></div>;
  if (part === "trials" && trial) return <Trial key={trial} model={model} view={view} name={trial} />;
  if (part === "compare") return <Compare model={model} view={view} />;
  return (
    <>
      {model.gone.value && <div class="banner bad" role="alert"><Icon name="warn" />This experiment was deleted. What is shown is what it was.</div>}
      <Head model={model} e={e} view={view} />
      <Stats model={model} e={e} view={view} />
      <nav class="tabs" aria-label="Parts of the experiment">
        {[["", "Overview"], ["trials", "Trials"], ["analysis", "Analysis"], ["definition", "Definition and events"]].map(([p, text]) => (
          <a key={p} href={href(`${pathOf(model.place)}${p && "/" + p}${search()}`)} aria-current={part === p ? "page" : undefined}>{text}</a>
        ))}
      </nav>
      {part !== "definition" && <FilterBar view={view} />}
      {!model.loaded.value && part !== "definition" ? <div class="panel"><Skeleton rows={10} /></div>
        : part === "" ? (
          <div class="panels">
            <History view={view} height={300} ended={() => model.experiment.value?.endTime !== undefined} />
            <Curves view={view} place={model.place} height={300} />
            <Parallel view={view} />
            <Trials view={view} height={520} />
          </div>
        ) : part === "trials" ? <Trials view={view} height={Math.max(420, innerHeight - 300)} />
        : part === "analysis" ? <Analysis model={model} view={view} />
        : part === "definition" ? <Definition model={model} /> : <Empty title="There is no such page" />}
    </>
  );
}

function Head({ model, e, view }: { model: Model; e: Experiment; view: View }) {
  const s = specOf(e), o = objectivesOf(e);
  return (
    <div class="page-head">
      <div>
        <h1>{model.place.experiment}</h1>
        <p class="sub">
          <StateMark state={stateOf(e)} /> · {o.map((o) => `${o.maximize ? "maximize" : "minimize"} ${o.metric}`).join(", ")} · {s.algorithm?.algorithmName}
          {s.earlyStopping?.algorithmName && ` · ${s.earlyStopping.algorithmName}`} · {e.message && stateOf(e) !== "running" ? e.message : `${formatAge(seconds(e.createTime))} old`}
          {e.tags.map((t) => <> <span class="tag">{t}</span></>)}
        </p>
      </div>
      {shared ? null : <Steering model={model} e={e} view={view} />}
    </div>
  );
}

function Stats({ model, e, view }: { model: Model; e: Experiment; view: View }) {
  const o = view.objective.value, { table } = view;
  table.revision.value;
  const end = seconds(e.endTime), begun = seconds(e.startTime ?? e.createTime);
  const n = model.loaded.value ? table.counts() : countsOf(e), shown = (k: number) => k.toLocaleString("en");
  const results = table.bounds.length > 0 && n.succeeded + n.stopped > 0;
  const max = specOf(e).maxTrialCount, r = e.recommended;
  return (
    <dl class="panel stats">
      {(table.objectives.length ? table.objectives : [o]).map((o) => {
        const best = table.best(o);
        return <div key={o.metric}><dt>Best {o.metric}</dt><dd>{best < 0 ? <>– {results && <small title={`No result meets ${table.bounds.map(boundText).join(" and ")}`}>none meets {table.bounds.map(boundText).join(" and ")}</small>}</> : <>{formatValue(table.metrics.get(o.metric)![best])} <small><a class="link" href={href(view.trialPath(table.number[best]))}>trial {table.number[best]}</a></small>{table.divergence(best, o.metric) && <small class="bad">{table.divergence(best, o.metric)}</small>}</>}</dd></div>;
      })}
      {table.objectives.length > 1 && <div title="Trials that no other beats in all objectives; they have a * in the table"><dt>Front</dt><dd>{shown(table.optimal.length)} <small>{table.optimal.length === 1 ? "trial" : "trials"}</small></dd></div>}
      {r?.trial && <div title={`A model of all results expects these parameters to be best on average, with ${formatValue(+r.value.toPrecision(3))} ± ${formatValue(+r.deviation.toPrecision(2))} (standard deviation). They were measured ${r.trials} times; a single trial varies by ± ${formatValue(+r.noise.toPrecision(2))}.`}>
        <dt>Recommended</dt><dd>{formatValue(+r.value.toPrecision(3))} <small><a class="link" href={href(view.trialPath(r.trial.number))}>trial {r.trial.number}</a></small></dd>
      </div>}
      <div style={{ gridColumn: table.objectives.length > 1 ? "auto" : "span 2" }}><dt>Done</dt><dd>{shown(n.done)} <small>{max ? `of ${max.toLocaleString("en")}` : ""}</small><Progress e={e} text={false} /></dd></div>
      <div><dt>Running</dt><dd>{shown(n.running)} <small>{n.pending ? `${shown(n.pending)} of them pending` : `${specOf(e).parallelTrialCount ?? "–"} at once`}</small></dd></div>
      <div><dt>Stopped</dt><dd>{shown(n.stopped)}</dd></div>
      <div><dt>Failed</dt><dd class={n.failed ? "bad" : ""}>{shown(n.failed)} <small>{specOf(e).maxFailedTrialCount !== undefined ? `of at most ${specOf(e).maxFailedTrialCount}` : ""}</small></dd></div>
      <div><dt>{Number.isNaN(end) ? "Left, at this pace" : "Took"}</dt><dd>{formatDuration(Number.isNaN(end) ? left(e) : end - begun)}</dd></div>
    </dl>
  );
}

