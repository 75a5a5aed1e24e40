// What an experiment is made of, as YAML, and what happened to it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { dashboard } from "../api/client";
import type { DescribeResponse, DescribeResponse_Condition, DescribeResponse_Event } from "../api/gen/vernier/v1/dashboard_pb";
import { nameOf, seconds, type Model } from "../data/experiment";
import { formatAge } from "../data/trials";
import { download } from "../plot/plot";
import { Failure, Icon, say, Skeleton } from "../ui/ui";

export function Definition({ model }: { model: Model }) {
  const about = useSignal<DescribeResponse | null>(null), error = useSignal<unknown>(null);
  const e = model.experiment.value;
  useEffect(() => {
    dashboard.describe({ name: nameOf(model.place) }).then((d) => (about.value = d), (err: unknown) => (error.value = err));
  }, [e?.etag, e?.state]);
  if (error.value) return <Failure error={error.value} />;
  const d = about.value;
  if (!d) return <div class="panel"><Skeleton rows={10} /></div>;
  return (
    <>
      {d.why && <div class="banner"><Icon name="info" /><span>{d.why}</span></div>}
      {e?.notes && <section class="panel" style={{ marginBottom: "16px" }}><header class="panel-head"><h2>Notes</h2></header><p class="pad" style={{ whiteSpace: "pre-wrap", paddingTop: 0 }}>{e.notes}</p></section>}
      <div class="panels">
        <section class="panel" aria-label="YAML">
          <header class="panel-head"><h2>YAML</h2><div class="panel-tools">
            <button type="button" class="icon-button" aria-label="Copy the YAML" title="Copy" onClick={() => navigator.clipboard?.writeText(d.yaml).then(() => say("Copied."))}><Icon name="copy" /></button>
            <button type="button" class="icon-button" aria-label="Save the YAML" title="Save" onClick={() => download(`${model.place.experiment}.yaml`, new Blob([d.yaml]))}><Icon name="download" /></button>
          </div></header>
          <pre class="code" tabIndex={0} aria-label="YAML of the experiment">{d.yaml}</pre>
        </section>
        <div class="stack" style={{ alignContent: "start" }}>
          <section class="panel"><header class="panel-head"><h2>Conditions</h2></header><Conditions all={d.conditions} /></section>
          <section class="panel"><header class="panel-head"><h2>Events</h2></header><Events all={d.events} /></section>
        </div>
      </div>
    </>
  );
}

export function Conditions({ all }: { all: DescribeResponse_Condition[] }) {
  if (!all.length) return <p class="note pad">There is no condition yet.</p>;
  return (
    <table class="grid"><thead><tr><th scope="col">Condition</th><th scope="col">Reason</th><th scope="col">Message</th><th scope="col" class="num">Since</th></tr></thead>
      <tbody>{all.map((c) => <tr key={c.type}><td class={c.holds ? "" : "muted"}>{c.holds ? "✓ " : "– "}{c.type}</td><td>{c.reason}</td><td class="wrap">{c.message}</td><td class="num muted">{formatAge(seconds(c.since))}</td></tr>)}</tbody></table>
  );
}

export function Events({ all }: { all: DescribeResponse_Event[] }) {
  if (!all.length) return <p class="note pad">No event is kept. A cluster keeps them for an hour.</p>;
  return (
    <ul class="events">
      {[...all].reverse().map((e, i) => (
        <li key={i}><time>{formatAge(seconds(e.time))}</time>
          <div><b class={e.warning ? "bad" : ""}>{e.reason}</b> <span class="muted">{e.object}{e.count > 1 && `, ${e.count} times`}</span><br />{e.message}</div></li>
      ))}
    </ul>
  );
}
