import { afterEach, expect, it, vi } from "vitest";
import { ways } from "../src/api/session";

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
