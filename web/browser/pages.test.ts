import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { demo, launch, missing, open, problems, token, type Instance } from "./server";

if (missing) console.error(`NOT RUN: the tests in a browser: ${missing}`);

const experiment = "/ns/demo/experiments/resnet-cifar100", ended = "/ns/demo/experiments/resnet-baseline";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.skipIf(missing)("the dashboard", () => {
  let at: Instance, browser: Browser;
  const pages: Page[] = [];
  const visit = async (...a: [string, Parameters<typeof open>[3]?]) => {
    const p = await open(browser, at, ...a);
    pages.push(p);
    return p;
  };
  const drag = async (p: Page, selector: string, from: [number, number], to: [number, number]) => {
    const box = (await p.locator(selector).boundingBox())!;
    await p.mouse.move(box.x + box.width * from[0], box.y + box.height * from[1]);
    await p.mouse.down();
    await p.mouse.move(box.x + box.width * ((from[0] + to[0]) / 2), box.y + box.height * ((from[1] + to[1]) / 2));
    await p.mouse.move(box.x + box.width * to[0], box.y + box.height * to[1]);
    await p.mouse.up();
  };
  beforeAll(async () => {
    [at, browser] = [await demo("--trials", "400", "--points", "200"), await launch()];
  }, 60_000);
  afterEach(async () => {
    await Promise.all(pages.splice(0).map((p) => p.context().close()));
    expect(problems.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    at?.stop();
  });

  it("keeps the token out of the address, and asks for one that works", async () => {
    const p = await visit("/");
    await p.getByRole("link", { name: "resnet-cifar100" }).waitFor();
    expect(p.url()).not.toContain("token");
    await p.evaluate(() => localStorage.setItem("vernier.token", "expired"));
    await p.reload();
    await p.getByLabel("Token").fill(token);
    await p.getByRole("button", { name: "Sign in" }).click();
    await p.getByRole("link", { name: "resnet-cifar100" }).waitFor();
  });

  it("shows the trials live: new ones come by themselves", async () => {
    const p = await visit(experiment);
    const count = async () => Number((await p.locator("dt:text-is('Done') + dd").innerText()).split(/\s/)[0].replaceAll(",", ""));
    await p.getByText("Live", { exact: true }).waitFor();
    const before = await count();
    await expect.poll(count, { timeout: 30_000 }).toBeGreaterThan(before + 3);
  });

  it("brushes an axis: all panels, the table and the address follow, and Escape takes it back", async () => {
    const p = await visit(experiment);
    await p.locator("[role=row] [role=gridcell]").first().waitFor();
    await p.locator("#plot-parallel").scrollIntoViewIfNeeded();
    // The first axis is lr, from 1e-5 below to 0.1 above.
    const box = (await p.locator("#plot-parallel .plot-box").boundingBox())!;
    await drag(p, "#plot-parallel .plot-box", [46 / box.width, 0.2], [46 / box.width, 0.5]);
    await p.getByText(/^lr: 0.0/).waitFor();
    expect(decodeURIComponent(p.url())).toContain("params.lr~");
    const said = await p.locator(".filter [role=status]").innerText();
    expect(said).toMatch(/^\d+ of \d+ trials$/);
    const [some, all] = said.match(/\d+/g)!.map(Number);
    expect(some).toBeGreaterThan(0);
    expect(some).toBeLessThan(all);
    const values = await p.locator(".vrow").evaluateAll((rows) => rows.map((r) => Number(r.children[5].textContent!.replace("−", "-"))));
    expect(values.length).toBeGreaterThan(5);
    for (const v of values) expect(v).toBeGreaterThan(4e-4);
    await p.reload();
    await p.getByText(/^lr: 0.0/).waitFor();
    await p.keyboard.press("Escape");
    await p.getByText(/^lr: 0.0/).waitFor({ state: "detached" });
  });

  it("filters by a query, and says what is wrong with one", async () => {
    const p = await visit(ended);
    const box = p.getByRole("searchbox", { name: "Filter trials" });
    await box.fill("state=failed OR loss<0.8 ORDER BY loss");
    const others = () => p.locator(".vrow").evaluateAll((rows) => rows.filter((r) => r.children[2].textContent!.trim() !== "failed" && !(Number(r.children[3].textContent) < 0.8)).length);
    await expect.poll(others).toBe(0);
    expect(await p.locator(".vrow").count()).toBeGreaterThan(0);
    await box.fill("los<1");
    await p.getByText("no column los").waitFor();
  });

  it("keeps a zoom, a scrolled table and the focus over twenty updates", async () => {
    const p = await visit(experiment);
    await p.locator(".vrow").first().waitFor();
    await drag(p, "#plot-history .plot-box", [0.3, 0.3], [0.7, 0.8]);
    await p.getByRole("button", { name: "Reset zoom" }).waitFor();
    const table = p.locator(".vtable");
    await table.focus();
    for (let i = 0; i < 40; i++) await p.keyboard.press("j");
    const cursor = () => p.locator(".vrow.cursor").textContent();
    // The first whole row that is seen, and how far it is from the edge.
    const top = () => table.evaluate((t) => {
      const edge = t.getBoundingClientRect().top;
      const row = [...t.querySelectorAll(".vrow")].map((r) => ({ trial: r.children[1].textContent, from: Math.round(r.getBoundingClientRect().top - edge) })).filter((r) => r.from >= 0).sort((a, b) => a.from - b.from)[0];
      return `${row?.trial} at ${row?.from}`;
    });
    const before = await top(), at = await cursor(), label = await p.locator("#plot-history .plot-box").getAttribute("aria-label");
    expect(await table.evaluate((t) => t.scrollTop)).toBeGreaterThan(100);
    await p.evaluate(() => {
      let n = 0;
      new MutationObserver(() => ((window as unknown as { updates: number }).updates = ++n)).observe(document.querySelector("#plot-history .plot-box")!, { attributes: true, attributeFilter: ["aria-label"] });
    });
    await expect.poll(() => p.evaluate(() => (window as unknown as { updates: number }).updates), { timeout: 110_000 }).toBeGreaterThan(20);
    expect(await p.locator("#plot-history .plot-box").getAttribute("aria-label")).not.toBe(label);
    expect(await p.getByRole("button", { name: "Reset zoom" }).count()).toBe(1);
    expect(await top()).toBe(before);
    expect(await cursor()).toBe(at);
    expect(await table.evaluate((t) => document.activeElement === t)).toBe(true);
  }, 150_000);

  it("saves a plot as PNG and SVG, and shows it as a table", async () => {
    const p = await visit(ended);
    await p.locator(".vrow").first().waitFor();
    for (const [kind, start] of [["PNG image", "\x89PNG"], ["SVG image", "<svg "]] as const) {
      await p.getByRole("button", { name: "Save History" }).click();
      const [file] = await Promise.all([p.waitForEvent("download"), p.getByRole("menuitem", { name: kind }).click()]);
      const bytes = readFileSync((await file.path())!);
      expect(bytes.subarray(0, start.length).toString("latin1")).toBe(start);
      expect(bytes.length).toBeGreaterThan(2_000);
    }
    await p.getByRole("button", { name: "History: show as table" }).click();
    await expect.poll(() => p.locator("#plot-history tbody tr").count()).toBeGreaterThan(30);
  });

  it("says what the colours of a contour stand for", async () => {
    const p = await visit(`${ended}/analysis`);
    await p.getByRole("img", { name: /^loss over \w+ and \w+, from [\d.]+ to [\d.]+\.$/ }).waitFor();
  });

  it("compares what is selected with the keyboard alone", async () => {
    const p = await visit(ended + "/trials");
    await p.locator(".vrow").first().waitFor();
    await p.locator(".vtable").focus();
    for (const key of ["j", "x", "j", "j", "x"]) await p.keyboard.press(key);
    await p.getByText("2 selected").waitFor();
    await p.locator("main").focus();
    await p.keyboard.press("c");
    await p.getByRole("heading", { name: "Compare 2 trials" }).waitFor();
    await expect.poll(() => p.locator("#plot-compare .plot-empty").count()).toBe(0);
  });

  it("works below the path that a proxy adds, and keeps it in all addresses", async () => {
    const below = await demo("--trials", "50", "--points", "50", "--base-path", "/tools/vernier/");
    try {
      const p = await open(browser, below, "/");
      expect(new URL(p.url()).pathname).toBe("/tools/vernier/");
      await p.getByRole("link", { name: "resnet-baseline" }).first().click();
      await p.locator("canvas").first().waitFor();
      expect(new URL(p.url()).pathname).toBe("/tools/vernier" + ended);
      await p.reload();
      await p.locator("canvas").first().waitFor();
      await p.goBack();
      await p.getByRole("link", { name: "resnet-baseline" }).first().waitFor();
    } finally {
      below.stop();
    }
  });

  it("works in ten tabs over six connections", async () => {
    const first = await visit(experiment), context = first.context();
    const tabs = [first];
    for (let i = 0; i < 9; i++) {
      const p = await context.newPage();
      await p.goto(`${at.url}${experiment.slice(1)}`);
      tabs.push(p);
    }
    for (const p of tabs) await p.locator(".vrow").first().waitFor({ timeout: 40_000 });
    await tabs[9].getByRole("link", { name: "Definition and events" }).click();
    await tabs[9].getByRole("heading", { name: "resnet-cifar100" }).waitFor();
  }, 120_000);

  it("tells what happened, and moves nothing for it", async () => {
    const p = await visit(ended);
    await p.locator(".vrow").first().waitFor();
    const bell = p.getByRole("button", { name: "Alerts: 2 new" }), before = await p.locator("main").boundingBox();
    await bell.click();
    expect(await p.locator("main").boundingBox()).toEqual(before);
    const list = p.getByRole("region", { name: "Alerts" });
    await list.getByText("The best trial is resnet-smoke-").waitFor();
    await p.evaluate(axe);
    expect(await p.evaluate(async () => (await (window as unknown as { axe: { run: (of: string) => Promise<{ violations: { id: string }[] }> } }).axe.run(".alerts")).violations.map((v) => v.id))).toEqual([]);
    await list.getByRole("link", { name: "Ended: resnet-smoke" }).click();
    await p.getByRole("heading", { name: "resnet-smoke" }).waitFor();
    await p.getByRole("button", { name: "Alerts: 2 new" }).click();
    await p.getByRole("button", { name: "Mark all as read" }).click();
    await p.keyboard.press("Escape");
    await p.reload();
    await p.getByRole("button", { name: "Alerts: none new" }).waitFor();
  });

  it("shows the last errors, and on which GPUs trials run", async () => {
    const p = await visit("/cluster");
    await p.getByRole("region", { name: "Failures", exact: true }).getByRole("link", { name: /^trial \d+$/ }).first().waitFor();
    const gpus = p.getByRole("region", { name: "GPUs", exact: true });
    await gpus.getByRole("img", { name: /^[1-8] of 8 held$/ }).first().waitFor();
    const trial = gpus.getByRole("link", { name: /^resnet-cifar100-/ }).first(), name = await trial.innerText();
    await trial.click();
    await p.waitForURL((u) => u.pathname.endsWith(`/trials/${name}`));
  });

  for (const dark of [false, true]) {
    for (const path of ["/", experiment, `${experiment}/trials?q=state%3Drunning`, `${experiment}/analysis`, `${experiment}/definition`, `${ended}/trials/resnet-baseline-0042`, `${ended}/compare?s=3,17,42`, "/new", "/cluster", "/#token=wrong"]) {
      it(`has nothing that axe finds: ${path} ${dark ? "dark" : "light"}`, async () => {
        const p = await visit(path, { dark });
        await p.locator("h1").first().waitFor();
        await p.locator(".skeleton").first().waitFor({ state: "detached" });
        await p.evaluate(axe); // past the CSP, as a script of the page could not be
        const found = await p.evaluate(async () => {
          const r = await (window as unknown as { axe: { run: (o: object) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> } }).axe.run({ resultTypes: ["violations"] });
          return r.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + n.failureSummary.slice(0, 220)).join("\n")}`);
        });
        expect(found).toEqual([]);
      });
    }
  }
});
