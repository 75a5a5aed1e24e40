import { afterEach, expect, it, vi } from "vitest";
import { readLog } from "../src/data/log";
import { awake } from "../src/data/awake";

let open = 0, asked = 0, broken = false;
vi.mock("../src/api/client", () => ({
  isAborted: () => false,
  dashboard: {
    // A stream that lasts until it is given up, or breaks off.
    async *readLogs(_: object, { signal }: { signal: AbortSignal }): AsyncGenerator<object> {
      open++;
      asked++;
      try {
        yield { note: "", text: new TextEncoder().encode(`line ${asked}\n`) };
        if (broken) throw new Error("[unavailable] gone");
        await new Promise((done) => signal.addEventListener("abort", done));
      } finally {
        open--;
      }
    },
  },
}));

let end = () => {};
afterEach(() => end());

it("holds no stream while the page is hidden", async () => {
  let text = "";
  end = readLog({ name: "a" }, true, (t) => { text = t; }, () => {});
  await expect.poll(() => [text, open]).toEqual(["line 1\n", 1]);
  awake.value = false;
  await expect.poll(() => open).toBe(0);
  expect(asked).toBe(1);
  awake.value = true;
  await expect.poll(() => [text, open]).toEqual(["line 2\n", 1]);
  end();
  await expect.poll(() => open).toBe(0);
});

it("says why a log that is not followed breaks off, and keeps what there was", async () => {
  broken = true;
  asked = 0;
  let text = "", note = "";
  end = readLog({ name: "a" }, false, (t) => { text = t; }, (n) => { note = n; });
  await expect.poll(() => [text, note, open]).toEqual(["line 1\n", "gone", 0]);
});
