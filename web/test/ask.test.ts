import { signal } from "@preact/signals";
import { afterEach, expect, it, vi } from "vitest";
import { TrialTable } from "../src/data/trials";
import { View } from "../src/data/view";
import { keepAsking, type Asked } from "../src/panels/ask";
import { setQuery } from "../src/router";

const asked: { objective: number; answer: (results: number) => void }[] = [];
vi.mock("../src/api/client", () => ({
  isAborted: () => false,
  explain: () => ({ text: "" }),
  dashboard: { analyze: ({ objective }: { objective: number }) => new Promise((done) => asked.push({ objective, answer: (results) => done({ answer: { case: "history", value: {} }, results }) })) },
}));
afterEach(() => vi.useRealTimers());

it("shows no answer about another objective than the one that is looked at", async () => {
  vi.useFakeTimers();
  const out = signal<Asked>({ answer: null, results: 0, resource: 0, leftOut: 0, error: "" });
  const view = new View(new TrialTable("b", [], [{ metric: "loss", maximize: false }, { metric: "latency", maximize: false }]), "/ns/a/experiments/b");
  const end = keepAsking("namespaces/a/experiments/b", view, { case: "history", value: { $typeName: "vernier.v1.AnalyzeRequest.History" } }, out);
  const seen = async (results: number, answer: (results: number) => void) => {
    answer(results);
    await vi.advanceTimersByTimeAsync(0);
    return out.value.results;
  };
  await vi.advanceTimersByTimeAsync(5_000);
  view.table.revision.value++; // more results
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await seen(1, asked[0].answer)).toBe(1);
  setQuery({ m: "latency" });
  expect(out.value.answer).toBeNull();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked.map((a) => a.objective)).toEqual([0, 0, 1]);
  expect(await seen(3, asked[2].answer)).toBe(3);
  expect(await seen(2, asked[1].answer)).toBe(3); // it comes late
  end();
});
