// GPUs and whatever else device plugins offer: what there is, who holds it, what waits.
import { useSignal } from "@preact/signals";
import { dashboard, explain } from "../api/client";
import type { Devices, ListDevicesResponse } from "../api/gen/vernier/v1/dashboard_pb";
import { usePolling } from "../data/awake";
import { trialPathOf } from "../data/experiment";
import { href } from "../router";

const every = 10_000, named = 4;

export function DevicesPanel() {
  const answer = useSignal<ListDevicesResponse | null>(null), fault = useSignal("");
  usePolling(() => void dashboard.listDevices({}).then((r) => ((answer.value = r), (fault.value = "")), (err: unknown) => (fault.value = explain(err).text)), every);
  const r = answer.value, empty = !r?.devices.length && !r?.waiting.length;
  return (
    <section class="panel wide" aria-label="GPUs"><header class="panel-head"><h2>GPUs</h2><span class="note">held by the trials that you may see; other pods may hold more</span></header>
      {fault.value && <p class="bad pad">{fault.value}</p>}
      {r?.hidden && <p class="note pad">{r.hidden}.</p>}
      {empty ? r && !r.hidden && <p class="note pad">No node offers GPUs or other devices.</p> : (
        <div class="scroll" tabIndex={0} aria-label="GPUs by node">
          <table class="grid"><thead><tr><th scope="col">Node</th><th scope="col">Device</th><th scope="col">Held</th><th scope="col">Trials</th></tr></thead>
            <tbody>
              {r!.waiting.map((d) => <Row key={`waiting ${d.resource}`} d={d} waits />)}
              {r!.devices.map((d) => <Row key={`${d.node} ${d.resource}`} d={d} />)}
            </tbody></table>
        </div>
      )}
    </section>
  );
}

function Row({ d, waits = false }: { d: Devices; waits?: boolean }) {
  const of = Number(d.allocatable), used = Number(d.used);
  return (
    <tr>
      <td class="name">{waits ? <span class="bad">waiting</span> : d.node || "hidden"}{of > 0 && !d.ready && <span class="bad"> not ready</span>}</td>
      <td>{d.resource}</td>
      <td style={{ minWidth: "180px" }}>
        {of > 0 ? (
          <div style={{ display: "flex", alignItems: "center", gap: "10px" }}>
            <div class="progress" role="img" aria-label={`${used} of ${of} held`} style={{ flex: 1 }}><i style={{ width: `${Math.min(100, (used / of) * 100)}%`, background: "var(--state-running)" }} /></div>
            <span class="muted" style={{ minWidth: "76px", textAlign: "right" }}>{used} / {of}</span>
          </div>
        ) : <span>{used} {waits && "asked for"}</span>}
      </td>
      <td class="wrap">
        {d.trials.slice(0, named).map((name) => <span key={name}><a class="link" href={href(trialPathOf(name))}>{name.slice(name.lastIndexOf("/") + 1)}</a> </span>)}
        {d.trials.length > named && <span class="muted">and more</span>}
        {d.message && <div class="muted">{d.message}</div>}
      </td>
    </tr>
  );
}
