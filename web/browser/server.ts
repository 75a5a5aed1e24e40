// A dashboard to test: made-up experiments behind the real API.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";

export const binary = process.env.VERNIER ?? resolve("../bin/vernier");
export const browserPath = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
export const token = "token-of-the-test";

/** Why these tests cannot run here; null where they can. */
export const missing = !browserPath ? "there is no Chromium (Debian: apt-get install chromium)" : !existsSync(binary) ? `there is no ${binary}: run make build` : null;

export interface Instance {
  url: string;
  /** Of its own, where it has one. */
  token?: string;
  stop: () => void;
}

/** Starts a demo of its own, at a free port. */
export function demo(...flags: string[]): Promise<Instance> {
  const child: ChildProcess = spawn(binary, ["demo", "--token", token, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((done, fail) => {
    let text = "";
    child.on("error", fail);
    child.on("exit", (code) => fail(new Error(`vernier demo ended with ${code}`)));
    child.stdout!.on("data", (d: Buffer) => {
      text += d;
      const m = /(http:\/\/\S+)#token=/.exec(text);
      if (m) done({ url: m[1], stop: () => child.kill() });
    });
  });
}

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: browserPath, args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), "--enable-precise-memory-info", "--js-flags=--expose-gc"] });

/** A page that is signed in. What it says on its console is an error of the test. */
export async function open(browser: Browser, at: Instance, path: string, options: { width?: number; height?: number; dark?: boolean } = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: options.width ?? 1280, height: options.height ?? 900 }, colorScheme: options.dark ? "dark" : "light", reducedMotion: "reduce", acceptDownloads: true });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("pageerror", (err) => problems.push(`${path}: ${err.stack ?? err}`));
  page.on("console", (m) => {
    if (m.type() === "error" && !/Failed to load resource/.test(m.text())) problems.push(`${path}: ${m.text()}`);
  });
  await page.goto(`${at.url}${path.replace(/^\//, "")}${path.includes("#") ? "" : `#token=${at.token ?? token}`}`);
  return page;
}

/** What pages threw or complained of. */
export const problems: string[] = [];
