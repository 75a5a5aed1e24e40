// One stream for all that a tab shows. Hidden tabs have none. Browsers open six
// connections to a server that has no TLS, for all tabs together: the tabs share
// four streams, and one that gets none asks every few seconds instead.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { effect, signal } from "@preact/signals";
import { awake } from "../data/awake";
import { dashboard, isAborted } from "./client";
import { locked } from "./session";
import { WatchRequestSchema, type GetSeriesRequestSchema, type WatchResponse } from "./gen/vernier/v1/dashboard_pb";

type Change = WatchResponse["change"];
type Topic =
  | { case: "experiments"; value: string }
  | { case: "trials"; value: string }
  | { case: "series"; value: MessageInitShape<typeof GetSeriesRequestSchema> };

interface Wish {
  topic: Topic;
  since: string;
  take: Take;
  /** It is not asked for at present, as it was not there. */
  absent?: boolean;
}

/** Takes a change; false says that it does not fit what is held: then all is sent again. */
type Take = (c: Change) => boolean | void;

const streams = 4;
const pollEvery = 5_000;
const absentFor = 15_000;
/** How what is shown stays new. */
export const mode = signal<"live" | "polling" | "asleep" | "lost" | "idle">("idle");

const wishes = new Map<number, Wish>();
let next = 1;
let run: AbortController | null = null;
let soon = 0;

/** Numbers of the trials whose curves can be had; null: all. */
export const heldCurves = (): Set<number> | null => null;
/** How many trials have no curves here because reading them took too long. */
export const lateCurves = (): number => 0;

/** Watches a topic until the answer is called. */
export function watch(topic: Topic, take: Take): () => void {
  const id = next++;
  wishes.set(id, { topic, since: "", take });
  restart();
  return () => {
    wishes.delete(id);
    restart();
  };
}

// Panels come and go together: one new stream for all of them.
function restart() {
  if (soon) return;
  soon = setTimeout(() => {
    soon = 0;
    run?.abort();
    run = null;
    if (present().length === 0) {
      mode.value = "idle";
      return;
    }
    if (!awake.value) {
      mode.value = "asleep";
      return;
    }
    if (locked.value !== null) return;
    run = new AbortController();
    void keep(run.signal);
  }, 30) as unknown as number;
}
effect(() => {
  awake.value;
  locked.value;
  restart();
});

async function keep(stop: AbortSignal) {
  for (let wait = 500; !stop.aborted; wait = Math.min(wait * 2, 15_000)) {
    const slot = await takeSlot(stop);
    try {
      if (slot) {
        for await (const m of dashboard.watch(request(), { signal: stop, timeoutMs: 0 })) {
          mode.value = "live";
          wait = 500;
          if (m.id) receive(m.id, m.change);
        }
      } else {
        await poll(stop);
        mode.value = "polling";
        wait = pollEvery / 2;
      }
    } catch (err) {
      if (stop.aborted || isAborted(err)) return;
      mode.value = "lost";
    } finally {
      slot?.();
    }
    await pause(wait * (0.75 + Math.random() / 2), stop);
  }
}

const present = () => [...wishes].filter(([, w]) => !w.absent);
const request = () =>
  create(WatchRequestSchema, {
    subscriptions: present().slice(0, 32).map(([id, w]) => ({ id, topic: w.topic as never, since: w.since })),
  });

function receive(id: number, change: Change) {
  const w = wishes.get(id);
  if (!w) return;
  if (change.case === "trials" || change.case === "experiments") w.since = change.value.revision;
  const fits = w.take(change) !== false;
  if (change.case === "end") {
    // It was deleted, and may be made again; or a server that has just started does not know it yet.
    w.absent = true;
    setTimeout(() => { w.absent = false; if (wishes.has(id)) restart(); }, absentFor);
  }
  if (!fits) w.since = "";
  if (!fits || present().length === 0) restart();
}

async function poll(signal: AbortSignal) {
  for (const [id, w] of present()) {
    if (w.topic.case === "trials") {
      const value = await dashboard.listTrialColumns({ parent: w.topic.value, since: w.since }, { signal });
      receive(id, { case: "trials", value });
    } else if (w.topic.case === "series") {
      const value = await dashboard.getSeries(w.topic.value, { signal });
      receive(id, { case: "series", value });
    } else {
      // The first answer of a stream is all that there is.
      const once = create(WatchRequestSchema, { subscriptions: [{ id, topic: w.topic as never, since: w.since }] });
      const end = AbortSignal.any([signal, AbortSignal.timeout(2_000)]);
      try {
        for await (const m of dashboard.watch(once, { signal: end })) if (m.id) { receive(m.id, m.change); break; }
      } catch (err) {
        if (signal.aborted || !end.aborted) throw err;
      }
    }
  }
}

/** Takes one of the streams that the tabs share; the answer gives it back. */
async function takeSlot(stop: AbortSignal): Promise<(() => void) | null> {
  if (!navigator.locks || location.protocol === "https:") return () => {};
  for (let i = 0; i < streams; i++) {
    const got = await new Promise<(() => void) | null>((resolve) => {
      void navigator.locks.request(`vernier-stream-${i}`, { ifAvailable: true }, (lock) => {
        if (!lock) return resolve(null);
        return new Promise<void>((free) => {
          resolve(free);
          stop.addEventListener("abort", () => free(), { once: true });
        });
      });
    });
    if (got) return got;
  }
  return null;
}

const pause = (ms: number, stop: AbortSignal) =>
  new Promise<void>((done) => {
    const t = setTimeout(done, ms);
    stop.addEventListener("abort", () => (clearTimeout(t), done()), { once: true });
  });
