// GPUs and whatever else device plugins offer: what there is, who holds it, what waits.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { dashboard, explain } from "../api/client";
import type { Devices, ListDevicesResponse } from "../api/gen/vernier/v1/dashboard_pb";
import { awake } from "../data/awake";
import { pathOf, placeOf } from "../data/experiment";
import { href } from "../router";

const every = 10_000, named = 4;

export function DevicesPanel() {
  const answer = useSignal<ListDevicesResponse | null>(null), fault = useSignal("");
  useEffect(() => {
    if (!awake.value) return;
    const ask = () => dashboard.listDevices({}).then((r) => ((answer.value = r), (fault.value = "")), (err: unknown) => (fault.value = explain(err).text));
    void ask();
    const timer = setInterval(() => void ask(), every);
    return () => clearInterval(timer);
  }, [awake.value]);
  const r = answer.value, rows = r?.devices ?? [];
  const here = rows.filter((d) => d.node), free = here.filter((d) => d.ready).reduce((n, d) => n + Math.max(0, Number(d.allocatable - d.used)), 0);
  return (
    <section class="panel wide" aria-label="GPUs"><header class="panel-head"><h2>GPUs</h2><span class="note">{r && !r.hidden && here.length > 0 && `${free} free`}</span></header>
      {fault.value && <p class="bad pad">{fault.value}</p>}
      {r?.hidden && <p class="note pad">{r.hidden}.</p>}
      {rows.length === 0 ? r && !r.hidden && <p class="note pad">No node offers GPUs or other devices.</p> : (
        <div class="scroll" tabIndex={0} aria-label="GPUs by node">
          <table class="grid"><thead><tr><th scope="col">Node</th><th scope="col">Device</th><th scope="col">In use</th><th scope="col">Trials</th></tr></thead>
            <tbody>{rows.map((d) => <Row key={`${d.node} ${d.resource}`} d={d} />)}</tbody></table>
        </div>
      )}
    </section>
  );
}

function Row({ d }: { d: Devices }) {
  const of = Number(d.allocatable), used = Number(d.used), waits = d.node === "";
  return (
    <tr>
      <td class="name">{waits ? <span class="bad">waiting</span> : d.node === "*" ? "all nodes" : d.node}{!waits && of > 0 && !d.ready && <span class="bad"> not ready</span>}</td>
      <td>{d.resource}</td>
      <td style={{ minWidth: "180px" }}>
        {of > 0 ? (
          <div style={{ display: "flex", alignItems: "center", gap: "10px" }}>
            <div class="progress" role="img" aria-label={`${used} of ${of} in use`} style={{ flex: 1 }}><i style={{ width: `${Math.min(100, (used / of) * 100)}%`, background: "var(--state-running)" }} /></div>
            <span class="muted" style={{ minWidth: "76px", textAlign: "right" }}>{used} / {of}</span>
          </div>
        ) : <span>{used} {waits ? "asked for" : "in use"}</span>}
      </td>
      <td class="wrap">
        {d.trials.slice(0, named).map((name) => { const p = placeOf(name), trial = name.split("/").pop()!; return <span key={name}><a class="link" href={href(`${pathOf(p)}/trials/${trial}`)}>{trial}</a> </span>; })}
        {d.trials.length > named && <span class="muted">and more</span>}
        {d.message && <div class="muted">{d.message}</div>}
      </td>
    </tr>
  );
}
