// An experiment in one file, opened from the disk without a network.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { demo, launch, missing, open, problems, type Instance } from "./server";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.skipIf(missing)("a shared file", () => {
  let at: Instance, browser: Browser, folder: string;
  const pages: Page[] = [], asked: string[] = [];

  /** Saves a page of the dashboard by its button, and opens the file. */
  const share = async (path: string, dark = false) => {
    const p = await open(browser, at, path);
    const [file] = await Promise.all([p.waitForEvent("download", { timeout: 90_000 }), p.getByRole("button", { name: "Share" }).click()]);
    const to = join(folder, `${pages.length}-${file.suggestedFilename()}`);
    await file.saveAs(to);
    await p.context().close();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce", offline: true, acceptDownloads: true });
    const copy = await context.newPage();
    copy.setDefaultTimeout(20_000);
    copy.on("pageerror", (err) => problems.push(`${path}: ${err.stack ?? err}`));
    copy.on("console", (m) => m.type() === "error" && problems.push(`${path}: ${m.text()}`));
    copy.on("request", (r) => !/^(file|blob|data):/.test(r.url()) && asked.push(r.url()));
    await copy.goto(`file://${to}`);
    pages.push(copy);
    return { page: copy, bytes: readFileSync(to).length };
  };
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "vernier-shared-"));
    [at, browser] = [await demo("--trials", "400", "--points", "200", "--running", "0"), await launch()];
  }, 60_000);
  afterEach(async () => {
    await Promise.all(pages.splice(0).map((p) => p.context().close()));
    expect(problems.splice(0)).toEqual([]);
    expect(asked.splice(0)).toEqual([]); // it asks no server for anything
  });
  afterAll(async () => {
    await browser?.close();
    at?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("opens where it was made, brushes, filters and follows links", async () => {
    const { page: p, bytes } = await share("/ns/demo/experiments/resnet-cifar100?q=loss%3C1.2");
    expect(bytes).toBeLessThan(3_000_000);
    await p.locator(".vrow").first().waitFor();
    expect(await p.getByRole("searchbox", { name: "Filter trials" }).inputValue()).toBe("loss<1.2");
    await p.locator("#plot-parallel").scrollIntoViewIfNeeded();
    const box = (await p.locator("#plot-parallel .plot-box").boundingBox())!;
    await p.mouse.move(box.x + 46, box.y + box.height * 0.2);
    await p.mouse.down();
    await p.mouse.move(box.x + 46, box.y + box.height * 0.5, { steps: 4 });
    await p.mouse.up();
    await p.getByText(/^lr: 0.0/).waitFor();
    await p.getByText(/^\d+ of 400 trials$/).waitFor();
    await p.keyboard.press("Escape");
    await p.getByText(/^lr: 0.0/).waitFor({ state: "detached" });
    await p.getByText("100 of 400 are in this file").waitFor();
    await p.getByRole("link", { name: "Analysis" }).click();
    await expect.poll(() => p.locator("#plot-importance .plot-empty, #plot-contour .plot-empty, #plot-pareto .plot-empty").count(), { timeout: 15_000 }).toBe(0);
    await p.getByRole("link", { name: "Definition and events" }).click();
    await p.locator("pre.code").waitFor();
    expect(await p.locator("pre.code").innerText()).toContain("weight_decay");
    await p.goBack();
    await p.getByRole("heading", { name: "Importance" }).waitFor();
    // Nothing can be done to a copy.
    for (const name of ["Pause", "Stop", "Budgets", "Clone", "Share", "Sign out"]) expect(await p.getByRole("button", { name }).count()).toBe(0);
  });

  it("switches the theme, and saves plots", async () => {
    const { page: p } = await share("/ns/demo/experiments/resnet-baseline");
    await p.locator(".vrow").first().waitFor();
    expect(await p.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    await p.keyboard.press(".");
    expect(await p.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await p.getByRole("button", { name: "Save History" }).click();
    const [file] = await Promise.all([p.waitForEvent("download"), p.getByRole("menuitem", { name: "PNG image" }).click()]);
    expect(readFileSync((await file.path())!).subarray(0, 4).toString("latin1")).toBe("\x89PNG");
  });

  it("is a comparison, with the curves of what is compared", async () => {
    const { page: p } = await share("/ns/demo/experiments/resnet-cifar100/compare?s=3,17,42");
    await p.getByRole("heading", { name: "Compare 3 trials" }).waitFor();
    await expect.poll(() => p.locator("#plot-compare .plot-empty").count()).toBe(0);
    await p.getByRole("button", { name: "Curves: show as table" }).click();
    expect(new Set(await p.locator("#plot-compare tbody tr td:first-child").allInnerTexts())).toEqual(new Set(["3", "17", "42"]));
    await p.locator("th").getByRole("link", { name: "17" }).click();
    await p.getByRole("heading", { name: "Trial 17" }).waitFor();
    expect(await p.getByRole("button", { name: "Rerun" }).count()).toBe(0);
  });

  it("is bounded, and says so: 10,000 trials", async () => {
    const large = await demo("--trials", "10000", "--running", "0");
    const before = at;
    at = large;
    try {
      const { page: p, bytes } = await share("/ns/demo/experiments/resnet-cifar100");
      console.log(`a shared file of 10,000 trials: ${(bytes / 1e6).toFixed(1)} MB`);
      expect(bytes).toBeLessThan(8_000_000);
      await p.getByText("100 of 10,000 are in this file").waitFor();
      await p.getByText(/^10,000/).first().waitFor();
    } finally {
      at = before;
      large.stop();
    }
  }, 120_000);

  for (const dark of [false, true]) {
    it(`has nothing that axe finds: ${dark ? "dark" : "light"}`, async () => {
      const { page: p } = await share("/ns/demo/experiments/resnet-baseline", dark);
      await p.locator(".vrow").first().waitFor();
      await p.evaluate(axe);
      const found = await p.evaluate(async () => {
        const r = await (window as unknown as { axe: { run: (o: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe.run({ resultTypes: ["violations"] });
        return r.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join("\n")}`);
      });
      expect(found).toEqual([]);
    });
  }
});
