// Questions to the server about the results, asked again when there are new ones,
// but not at each.
import { effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { dashboard, explain, isAborted } from "../api/client";
import type { AnalyzeRequest, AnalyzeResponse } from "../api/gen/vernier/v1/dashboard_pb";
import { awake } from "../data/awake";
import { nameOf, type Model } from "../data/experiment";
import type { TrialTable } from "../data/trials";
import type { View } from "../data/view";

export interface Asked {
  answer: AnalyzeResponse["answer"] | null;
  results: number;
  /** What these had of the resource, and how many results of others are left out. */
  resource: number;
  leftOut: number;
  error: string;
}
const every = 5_000;

/** What an answer is of, where it leaves out results of other resources. */
export const answered = (a: Asked, { length }: TrialTable) => (a.leftOut ? `of ${a.results} trials with ${length || "resource"}=${a.resource}; ${a.leftOut} others are left out` : null);

const nothing: Asked = { answer: null, results: 0, resource: 0, leftOut: 0, error: "" };

export function useAnswer(model: Model, view: View, question: AnalyzeRequest["question"]): ReadonlySignal<Asked> {
  const out = useMemo(() => signal(nothing), []);
  useEffect(() => keepAsking(nameOf(model.place), view, question, out), [JSON.stringify(question), view]);
  return out;
}

/** Keeps out the answer about the objective that is looked at, until what it returns is called. */
export function keepAsking(parent: string, view: View, question: AnalyzeRequest["question"], out: Signal<Asked>): () => void {
  const stop = new AbortController();
  let timer = 0, last = 0, of = view.objective.peek().metric;
  const ask = () => {
    timer = 0;
    last = Date.now();
    const metric = view.objective.peek().metric, objective = Math.max(0, view.table.objectives.findIndex((o) => o.metric === metric));
    const late = () => stop.signal.aborted || metric !== of;
    dashboard.analyze({ parent, objective, question }, { signal: stop.signal }).then(
      (r) => { if (!late()) out.value = { answer: r.answer, results: r.results, resource: r.resource, leftOut: r.leftOut, error: "" }; },
      (err: unknown) => { if (!isAborted(err) && !late()) out.value = { ...out.peek(), error: explain(err).text }; },
    );
  };
  const end = effect(() => {
    view.table.revision.value;
    if (view.objective.value.metric !== of) {
      of = view.objective.value.metric;
      out.value = nothing;
      clearTimeout(timer);
      timer = last = 0;
    }
    if (awake.value && !timer) timer = setTimeout(ask, Math.max(0, every - (Date.now() - last))) as unknown as number;
  });
  return () => { end(); clearTimeout(timer); stop.abort(); };
}
