// What happened lately in the experiments of the user: a bell with a number, and the list
// when it is opened. Nothing comes up by itself.
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { dashboard, explain } from "../api/client";
import { usePolling } from "../data/awake";
import type { Alert } from "../api/gen/vernier/v1/dashboard_pb";
import { pathOf, placeOf, seconds } from "../data/experiment";
import { formatAge } from "../data/trials";
import { href } from "../router";
import { Icon } from "./ui";

const every = 30_000, key = "vernier.alerts-read";
const words: Record<string, string> = { TrialDiverged: "A trial diverged", ExperimentStalled: "Stalled", GoalReached: "Goal reached", ExperimentEnded: "Ended", ExperimentFailed: "Failed" };
const read = (): string[] => { try { return JSON.parse(localStorage.getItem(key) ?? "[]"); } catch { return []; } };

/** How many alerts are new, and of these the warnings: only those are counted at the bell. */
export function newOf(alerts: Alert[], known: Set<string>) {
  const fresh = alerts.filter((a) => !known.has(a.id));
  return { fresh: fresh.length, warnings: fresh.filter((a) => a.warning).length };
}

export function Bell() {
  const alerts = useSignal<Alert[]>([]), known = useSignal(new Set(read())), open = useSignal(false), fault = useSignal("");
  const box = useRef<HTMLDivElement>(null), id = useId();
  usePolling(() => void dashboard.listAlerts({}).then((r) => ((alerts.value = r.alerts), (fault.value = "")), (err: unknown) => (fault.value = explain(err).text)), every);
  useEffect(() => {
    if (!open.value) return;
    const away = (e: Event) => !box.current?.contains(e.target as Node) && (open.value = false);
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open.value]);
  const { fresh, warnings } = newOf(alerts.value, known.value);
  const seen = () => {
    const ids = alerts.value.map((a) => a.id);
    known.value = new Set(ids);
    try { localStorage.setItem(key, JSON.stringify(ids)); } catch { /* they are new again in the next page */ }
  };
  const button = () => box.current?.querySelector<HTMLElement>("button");
  const label = `Alerts: ${fresh || "none"} new${warnings ? `, ${warnings} to look at` : ""}`;
  return (
    <div class="menu" ref={box} onKeyDown={(e) => { if (e.key === "Escape" && open.value) { open.value = false; button()?.focus(); e.stopPropagation(); } }}>
      <button type="button" class="icon-button bell" aria-expanded={open.value} aria-controls={id} aria-label={label} title={label} onClick={() => (open.value = !open.value)}>
        <Icon name="bell" />
        {warnings > 0 && <span class="count bad" aria-hidden="true">{warnings > 99 ? "99+" : warnings}</span>}
      </button>
      {open.value && (
        <section class="alerts" id={id} aria-label="Alerts">
          <header><h2>Alerts</h2>{fresh > 0 && <button type="button" class="button" onClick={seen}>Mark all as read</button>}</header>
          {fault.value && <p class="bad">{fault.value}</p>}
          {alerts.value.length === 0 ? !fault.value && <p class="muted">Nothing in the last seven days. A trial that diverges, and an experiment that stalls, reaches its goal, ends or fails will be here.</p> : (
            <ul>
              {alerts.value.map((a) => {
                const p = placeOf(a.experiment), of = pathOf(p);
                return (
                  <li key={a.id} class={known.value.has(a.id) ? "" : "new"}>
                    <span class={a.warning ? "bad" : a.trial ? "good" : "muted"}><Icon name={a.warning ? "warn" : a.trial ? "check" : "info"} size={15} /></span>
                    <div>
                      <a class="link" href={href(a.reason === "TrialDiverged" ? `${of}/trials/${a.trial}` : of)} onClick={() => (open.value = false)}>{words[a.reason] ?? a.reason}: {p.experiment}</a>
                      <p>{a.message}</p>
                      <small class="muted">{p.namespace} · {formatAge(seconds(a.time))} ago</small>
                    </div>
                  </li>
                );
              })}
            </ul>
          )}
        </section>
      )}
    </div>
  );
}
