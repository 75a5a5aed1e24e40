// Pictures of every page for docs/screenshots, by width: npm run screenshots. Those of 1280 pixels are committed.
import { afterAll, beforeAll, describe, it } from "vitest";
import type { Browser } from "playwright-core";
import { demo, launch, missing, open, type Instance } from "./server";

const pages: [string, string][] = [
  ["experiments", "/"], ["overview", "/ns/demo/experiments/resnet-cifar100"], ["filtered", "/ns/demo/experiments/resnet-cifar100?b=params.lr~0.001~0.01!metrics.loss~0.5~0.8&s=12,40"],
  ["analysis", "/ns/demo/experiments/resnet-cifar100/analysis"], ["trial", "/ns/demo/experiments/resnet-baseline/trials/resnet-baseline-0042"],
  ["compare", "/ns/demo/experiments/resnet-baseline/compare?s=3,17,42"], ["new", "/new"], ["cluster", "/cluster"], ["login", "/#token=wrong"], ["alerts", "/?alerts"],
];

describe.skipIf(missing || !process.env.VERNIER_SCREENSHOTS)("screenshots", () => {
  let at: Instance, browser: Browser;
  beforeAll(async () => {
    [at, browser] = [await demo("--trials", "1000", "--running", "6"), await launch()];
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    at?.stop();
  });
  for (const dark of [false, true]) {
    for (const width of [1280, 1920]) {
      for (const [name, path] of pages) {
        it(`${name} ${dark ? "dark" : "light"} ${width}`, async () => {
          const p = await open(browser, at, path, { width, height: width === 1280 ? 800 : 1080, dark });
          await p.locator("h1").first().waitFor();
          if (name === "alerts") await p.getByRole("button", { name: /^Alerts: \d/ }).click();
          await p.waitForTimeout(4_000); // for curves and answers, which come later than the page
          await p.screenshot({ path: new URL(`../../docs/screenshots/${name}-${dark ? "dark" : "light"}-${width}.png`, import.meta.url).pathname });
          await p.context().close();
        });
      }
    }
  }
});
