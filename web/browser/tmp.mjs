import { chromium } from "playwright-core";
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const [,, url, out, dark, click] = process.argv;
const c = await b.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: dark === "dark" ? "dark" : "light" });
const p = await c.newPage();
p.on("pageerror", (e) => console.log("ERR", e.stack)); p.on("console", (m) => console.log("CONSOLE", m.text()));
await p.goto(url); await p.waitForTimeout(4000);
if (click) { await p.getByText(click, { exact: true }).first().click(); await p.waitForTimeout(3000); }
await p.screenshot({ path: out, fullPage: true });
await b.close();
