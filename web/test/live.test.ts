import { create } from "@bufbuild/protobuf";
import { afterEach, expect, it, vi } from "vitest";
import { ExperimentChangesSchema, type WatchRequest } from "../src/api/gen/vernier/v1/dashboard_pb";
import { ExperimentSchema } from "../src/api/gen/vernier/v1/experiment_pb";
import { mode, watch } from "../src/api/live";
import { changed } from "../src/pages/experiments";

const asked: string[] = [];
vi.mock("../src/api/client", () => ({
  isAborted: () => true,
  dashboard: {
    // A stream with one change, which lasts until it is given up.
    async *watch(r: WatchRequest, { signal }: { signal: AbortSignal }): AsyncGenerator<object> {
      if (r.subscriptions[0].topic.value === "gone") {
        yield { id: r.subscriptions[0].id, change: { case: "end", value: {} } };
        return;
      }
      asked.push(r.subscriptions[0].since);
      yield { id: r.subscriptions[0].id, change: { case: "experiments", value: { revision: `after ${asked.length}` } } };
      await new Promise((done) => signal.addEventListener("abort", done));
    },
  },
}));
vi.stubGlobal("navigator", {});

const ends: (() => void)[] = [];
afterEach(() => {
  ends.splice(0).forEach((end) => end());
  vi.useRealTimers();
});

it("asks for all again where a change does not fit what is held, and else for what is new", async () => {
  ends.push(watch({ case: "experiments", value: "namespaces/a" }, () => asked.length !== 1));
  await expect.poll(() => asked).toEqual(["", ""]);
  ends.push(watch({ case: "experiments", value: "namespaces/b" }, () => {})); // begins the stream anew
  await expect.poll(() => asked).toEqual(["", "", "after 2"]);
});

it("asks for what is gone again after a while", async () => {
  await expect.poll(() => mode.value).toBe("idle");
  vi.useFakeTimers();
  const got: unknown[] = [];
  ends.push(watch({ case: "trials", value: "gone" }, (c) => { got.push(c.case); }));
  await vi.advanceTimersByTimeAsync(14_000);
  expect([got, mode.value]).toEqual([["end"], "idle"]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([got, mode.value]).toEqual([["end", "end"], "idle"]);
});

const named = (...names: string[]) => names.map((n) => create(ExperimentSchema, { name: `namespaces/${n.replace("/", "/experiments/")}` }));
const held = new Map(named("a/one", "a/two", "b/one").map((e) => [e.name, e]));
const changes: [string, Parameters<typeof create<typeof ExperimentChangesSchema>>[1], string[], boolean][] = [
  ["a new one", { total: 3, experiments: named("a/three") }, ["a/one", "a/two", "b/one", "a/three"], true],
  ["a deleted one", { total: 1, deleted: [named("a/one")[0].name] }, ["a/two", "b/one"], true],
  ["one that was deleted while nothing was watched", { total: 1 }, ["a/one", "a/two", "b/one"], false],
  ["all", { total: 1, whole: true, experiments: named("a/four") }, ["b/one", "a/four"], true],
];
for (const [name, c, want, fits] of changes) {
  it(`takes in a change of a namespace: ${name}`, () => {
    const got = changed(held, "a", create(ExperimentChangesSchema, c));
    expect([[...got.next.keys()], got.fits]).toEqual([named(...want).map((e) => e.name), fits]);
  });
}
