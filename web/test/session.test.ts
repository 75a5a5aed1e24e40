import { afterEach, expect, it, vi } from "vitest";
import { fresh, isRefused, signIn, ways } from "../src/api/session";

afterEach(() => vi.unstubAllGlobals());

const answers = (text: string, status: number, type: string) =>
  vi.stubGlobal("fetch", async () => new Response(text, { status, headers: { "Content-Type": type } }));

it("passes on how people sign in, with what is in the way", async () => {
  answers(`{"proxy":true,"trouble":"The OpenID provider cannot be reached."}`, 200, "application/json");
  expect(await ways()).toEqual({ proxy: true, trouble: "The OpenID provider cannot be reached." });
});

it("knows a demo by the page that it has there", async () => {
  answers("<!doctype html>", 200, "text/html");
  expect(await ways()).toEqual({});
});

it("takes no error for a demo", async () => {
  answers("upstream request timeout", 503, "text/plain");
  expect((await ways()).trouble).toContain("503");
  vi.stubGlobal("fetch", async () => { throw new TypeError("Failed to fetch"); });
  expect((await ways()).trouble).toContain("cannot be reached");
});

const renewals: [string, () => Promise<Response>, string | null, boolean][] = [
  ["goes on with an expired token while the server cannot be reached", () => Promise.reject(new TypeError("Failed to fetch")), "old", false],
  ["goes on with it while the provider cannot be reached", async () => new Response("{}", { status: 503 }), "old", false],
  ["has another one where it can be had", async () => Response.json({ token: "new", expires: Date.now() / 1000 + 600 }), "new", false],
  ["has none when it is refused", async () => new Response("{}", { status: 401 }), null, true],
];
for (const [name, answer, want, refused] of renewals) {
  it(name, async () => {
    vi.stubGlobal("navigator", {});
    const kept = new Map<string, string>();
    vi.stubGlobal("localStorage", { getItem: (k: string) => kept.get(k) ?? null, setItem: (k: string, v: string) => kept.set(k, v), removeItem: (k: string) => kept.delete(k) });
    vi.stubGlobal("fetch", answer);
    signIn("old", Date.now() / 1000 - 60);
    expect(await fresh()).toBe(want);
    expect(isRefused("old")).toBe(refused);
  });
}
