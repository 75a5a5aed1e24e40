// What can be done to an experiment while it runs, with the rights of the caller.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { ValueSchema, type Value } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { experiments } from "../api/client";
import type { Experiment } from "../api/gen/vernier/v1/experiment_pb";
import { countsOf, nameOf, pathOf, specOf, stateOf, type Model } from "../data/experiment";
import type { View } from "../data/view";
import { go, href } from "../router";
import { Share } from "../ui/share";
import { complain, Dialog, Icon, Menu, say } from "../ui/ui";

const whole = { type: "number", min: 1 } as const, time = { type: "text", placeholder: "no limit", pattern: "([0-9.]+(h|m|s))+", title: "Such as 1h30m" } as const;
// What vernier edit changes. A limit that is emptied is taken away; one without a placeholder cannot be.
const budgets = [
  ["parallelTrialCount", "Trials at once", "At most so many run together.", whole],
  ["maxTrialCount", "Trials in all", "The experiment ends after so many.", whole],
  ["maxFailedTrialCount", "Failed trials", "It fails when so many have failed.", { ...whole, min: 0 }],
  ["maxDuration", "Duration", "It ends so long after its start, such as 1h30m.", time],
  ["maxTrialDuration", "Duration of a trial", "New trials that run longer fail.", time],
  ["maxGPUHours", "GPU hours", "It ends when its trials have used so many.", { type: "number", min: 0, step: "any", placeholder: "no limit" }],
] as const;
type Budgets = Partial<Record<(typeof budgets)[number][0], number | string>>;

/** What a form changes of the budgets: undefined takes a limit away. */
export function changedBudgets(now: Budgets, given: (key: string) => string): Budgets {
  const out: Budgets = {};
  for (const [key, , , input] of budgets) {
    const text = given(key).trim();
    if (text === String(now[key] ?? "")) continue;
    if (text !== "") out[key] = input.type === "number" ? Number(text) : text;
    else if ("placeholder" in input) out[key] = undefined;
  }
  return out;
}

export function Steering({ model, e, view }: { model: Model; e: Experiment; view: View }) {
  const open = useSignal<"" | "budget" | "queue" | "notes" | "stop" | "delete">(""), busy = useSignal(false);
  const state = stateOf(e), active = state === "running" || state === "paused", name = nameOf(model.place);
  const act = async (what: () => Promise<unknown>, done: string) => {
    busy.value = true;
    try {
      const answer = (await what()) as Partial<Experiment> | undefined;
      say([done, ...(answer?.warnings ?? [])].join(" "));
      open.value = "";
      model.refresh();
    } catch (err) {
      complain(err);
    } finally {
      busy.value = false;
    }
  };
  const update = (paths: string[], spec: JsonObject, more: Partial<Pick<Experiment, "notes" | "tags">> = {}) =>
    experiments.updateExperiment({ experiment: { name, spec, ...more }, updateMask: { paths } });
  const pause = () => act(() => update(["spec.suspend"], { suspend: state === "running" }), state === "running" ? "Paused: no new trials. Those that run go on." : "Resumed.");
  useEffect(() => {
    const key = (k: KeyboardEvent) => {
      if (k.key === "p" && active && !k.metaKey && !k.ctrlKey && !(k.target as Element).closest("input,textarea,select,dialog")) void pause();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [active, state]);
  const close = () => (open.value = "");
  return (
    <div class="actions">
      {active && <button type="button" class="button" disabled={busy.value} onClick={pause}><Icon name={state === "running" ? "pause" : "play"} />{state === "running" ? "Pause" : "Resume"}</button>}
      {active && <button type="button" class="button" disabled={busy.value} onClick={() => (open.value = "stop")}><Icon name="stop" />Stop</button>}
      <button type="button" class="button" onClick={() => (open.value = "budget")}><Icon name="gear" />Budgets</button>
      <Share model={model} view={view} />
      <a class="button" href={href(`/new?from=${encodeURIComponent(name)}`)}><Icon name="clone" />Clone</a>
      <Menu label="More" icon="more" items={[
        ...(active ? [{ text: "Try a point of your own", icon: "plus", act: () => { open.value = "queue"; } }] : []),
        { text: "Notes and tags", icon: "info", act: () => { open.value = "notes"; } },
        { text: "Delete", icon: "trash", danger: true, act: () => { open.value = "delete"; } },
      ]} />
      <Dialog title="Budgets" open={open.value === "budget"} close={close}><Budget e={e} busy={busy.value} close={close} put={(spec) => act(() => update(Object.keys(spec).map((k) => `spec.${k}`), JSON.parse(JSON.stringify(spec)) as JsonObject), "Changed.")} /></Dialog>
      <Dialog title="Try a point of your own" open={open.value === "queue"} close={close}>
        <Queue view={view} busy={busy.value} close={close} put={(parameters) => act(() => experiments.createTrial({ parent: name, parameters, requestId: crypto.randomUUID() }), "Queued: it is tried before the algorithm's next point.")} />
      </Dialog>
      <Dialog title="Notes and tags" open={open.value === "notes"} close={close}><Notes e={e} busy={busy.value} close={close} put={(notes, tags) => act(() => update(["notes", "tags"], {}, { notes, tags }), "Saved.")} /></Dialog>
      <Dialog title={`Stop ${model.place.experiment}?`} open={open.value === "stop"} close={close}>
        <p>There will be no new trials, and an experiment that has ended can be cloned but not resumed. {countsOf(e).running > 0 && `${countsOf(e).running} trials have not ended.`}</p>
        <footer>
          <button type="button" class="button" onClick={close}>Go on</button>
          <button type="button" class="button" disabled={busy.value} onClick={() => act(() => experiments.stopExperiment({ name }), "It ends when the running trials have.")}>Let them finish</button>
          <button type="button" class="button danger" disabled={busy.value} onClick={() => act(() => experiments.stopExperiment({ name, cancel: true }), "Stopped, with its trials.")}>Stop them too</button>
        </footer>
      </Dialog>
      <Dialog title={`Delete ${model.place.experiment}?`} open={open.value === "delete"} close={close}>
        <p>Its {e.trials.toLocaleString("en")} trials, their curves and checkpoints are deleted with it. This cannot be undone.</p>
        <footer>
          <button type="button" class="button" onClick={close}>Keep it</button>
          <button type="button" class="button danger" disabled={busy.value} onClick={() => act(async () => { await experiments.deleteExperiment({ name, uid: e.uid }); go("/"); }, "Deleted.")}>Delete</button>
        </footer>
      </Dialog>
      <span class="sr" role="status">{busy.value ? "Working" : ""}</span>
      {state === "unknown" && <a href={href(pathOf(model.place))} hidden>reload</a>}
    </div>
  );
}

function Budget({ e, busy, close, put }: { e: Experiment; busy: boolean; close: () => void; put: (spec: Budgets) => void }) {
  const spec = specOf(e);
  return (
    <form class="stack" onSubmit={(ev) => {
      ev.preventDefault();
      const data = new FormData(ev.currentTarget), out = changedBudgets(spec, (key) => String(data.get(key) ?? ""));
      if (Object.keys(out).length) put(out);
      else close();
    }}>
      {budgets.map(([key, title, hint, input]) => (
        <label class="field" key={key}><span>{title}</span><input {...input} name={key} required={spec[key] !== undefined && !("placeholder" in input)} defaultValue={spec[key] === undefined ? "" : String(spec[key])} /><small>{hint}</small></label>
      ))}
      <footer><button type="button" class="button" onClick={close}>Cancel</button><button class="button primary" disabled={busy}>Change</button></footer>
    </form>
  );
}

function Queue({ view, busy, close, put }: { view: View; busy: boolean; close: () => void; put: (p: Record<string, Value>) => void }) {
  const { table } = view, selected = [...view.selected.value][0], from = selected !== undefined ? table.row(selected) : view.best.value;
  return (
    <form class="stack" onSubmit={(ev) => {
      ev.preventDefault();
      const data = new FormData(ev.currentTarget), out: Record<string, Value> = {};
      for (const s of table.specs) {
        const text = String(data.get(s.name) ?? "");
        if (text === "") continue; // it is not active
        out[s.name] = create(ValueSchema, { kind: s.words ? { case: "stringValue", value: text } : { case: "numberValue", value: Number(text) } });
      }
      put(out);
    }}>
      <p class="muted">{from >= 0 ? `It begins with the values of trial ${table.number[from]}.` : "Give each parameter a value."}</p>
      <div class="fields">
        {table.specs.map((s) => {
          const v = from >= 0 ? table.params.get(s.name)![from] : NaN;
          return (
            <label class="field" key={s.name}><span>{s.name}</span>
              {s.words ? <select name={s.name} defaultValue={s.words[v]}>{s.words.map((w) => <option key={w} value={w}>{w}</option>)}</select>
                : <input type="number" step="any" name={s.name} min={s.min} max={s.max} defaultValue={Number.isNaN(v) ? "" : String(v)} />}
              {s.min !== undefined && !s.words && <small>{s.min} to {s.max}</small>}
            </label>
          );
        })}
      </div>
      <footer><button type="button" class="button" onClick={close}>Cancel</button><button class="button primary" disabled={busy}>Queue</button></footer>
    </form>
  );
}

function Notes({ e, busy, close, put }: { e: Experiment; busy: boolean; close: () => void; put: (notes: string, tags: string[]) => void }) {
  return (
    <form class="stack" onSubmit={(ev) => {
      ev.preventDefault();
      const data = new FormData(ev.currentTarget);
      put(String(data.get("notes")), String(data.get("tags")).split(/[\s,]+/).filter(Boolean));
    }}>
      <label class="field"><span>Notes</span><textarea name="notes" rows={7} maxLength={16000} defaultValue={e.notes} /></label>
      <label class="field"><span>Tags</span><input type="text" name="tags" defaultValue={e.tags.join(" ")} placeholder="baseline resnet50" /><small>Words of letters, digits, -, _ and .</small></label>
      <footer><button type="button" class="button" onClick={close}>Cancel</button><button class="button primary" disabled={busy}>Save</button></footer>
    </form>
  );
}
