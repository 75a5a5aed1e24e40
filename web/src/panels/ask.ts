// Questions to the server about the results, asked again when there are new ones,
// but not at each.
import { effect, signal, type ReadonlySignal } from "@preact/signals";
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

export function useAnswer(model: Model, view: View, question: AnalyzeRequest["question"]): ReadonlySignal<Asked> {
  const out = useMemo(() => signal<Asked>({ answer: null, results: 0, resource: 0, leftOut: 0, error: "" }), []);
  const key = JSON.stringify(question);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0, last = 0;
    const ask = () => {
      timer = 0;
      last = Date.now();
      const objective = Math.max(0, view.table.objectives.findIndex((o) => o.metric === view.objective.peek().metric));
      dashboard.analyze({ parent: nameOf(model.place), objective, question }, { signal: stop.signal }).then(
        (r) => (out.value = { answer: r.answer, results: r.results, resource: r.resource, leftOut: r.leftOut, error: "" }),
        (err: unknown) => { if (!isAborted(err) && !stop.signal.aborted) out.value = { ...out.peek(), error: explain(err).text }; },
      );
    };
    const end = effect(() => {
      view.table.revision.value;
      view.objective.value;
      if (awake.value && !timer) timer = setTimeout(ask, Math.max(0, every - (Date.now() - last))) as unknown as number;
    });
    return () => { end(); clearTimeout(timer); stop.abort(); };
  }, [key, view]);
  return out;
}
