import { chromium } from "playwright-core";
const [,, base, token, path, out, dark, click] = process.argv;
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const c = await b.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: dark });
const p = await c.newPage();
p.on("pageerror", (e) => console.log("ERR", e.stack)); p.on("console", (m) => console.log("CONSOLE", m.text()));
await p.goto(`${base}${path}#token=${token}`); await p.waitForTimeout(4000);
if (click) { await p.getByText(click, { exact: true }).first().click(); await p.waitForTimeout(2500); }
await p.screenshot({ path: out, fullPage: true });
await b.close();
