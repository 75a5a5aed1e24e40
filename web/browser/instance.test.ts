// Every way of steering, on the embedded control plane, with trials that run.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { binary, launch, missing, open, problems, type Instance } from "./server";

const program = 'i=0; while [ $i -lt 25 ]; do i=$((i+1)); echo "epoch=$i loss=$0"; sleep 0.2; done';
const definition = (max: string) => `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: from-yaml}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 3
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0", max: "${max}"}}
`;
// Half of the points are out of bounds, the best one among them.
const bounded = `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: bounded}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  constraints: [{metricName: memory, max: 50}]
  algorithm: {algorithmName: grid}
  maxTrialCount: 4
  parallelTrialCount: 2
  parameters:
  - {name: lr, parameterType: discrete, feasibleSpace: {list: ["1", "2", "3", "4"]}}
  metricsCollectorSpec: {collector: {kind: StdOut}}
  trialTemplate:
    primaryContainerName: training
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers: [{name: training, image: none, command: [sh, -c, "echo loss=\${trialParameters.lr} memory=$((100 / \${trialParameters.lr}))"]}]
`;
const slow = { timeout: 40_000 };
// Trials that hold a GPU and write a model.
const trains = `apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: trains}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 1
  parallelTrialCount: 1
  parameters:
  - {name: lr, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  metricsCollectorSpec: {collector: {kind: StdOut}}
  trialTemplate:
    primaryContainerName: training
    checkpoints: {path: /checkpoints}
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: training
              image: none
              command: [sh, -c, "mkdir -p /checkpoints/epoch-1; echo weights > /checkpoints/epoch-1/model.txt; echo loss=\${trialParameters.lr}; sleep 25"]
              resources: {limits: {nvidia.com/gpu: 1}}
`;
// A driver of a machine that has a GPU.
const smi = `#!/bin/sh
case "$*" in *utilization*) echo "GPU-of-the-browser-test, 73, 2048" ;; *bus_id*) echo "00000000:1A:00.0, GPU-of-the-browser-test" ;; esac
`;

describe.skipIf(missing)("an instance", () => {
  let at: Instance, browser: Browser, home: string, p: Page;
  const vernier = (...args: string[]) =>
    execFileSync(binary, ["--home", home, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 64 << 20, env: { ...process.env, PATH: `${home}-driver:${process.env.PATH}` } });
  const count = (name: string) => Number(/(\d+)\//.exec(vernier("get", "experiments", name))![1]);
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "vernier-browser-"));
    mkdirSync(`${home}-driver`);
    for (const [name, text] of [["nvidia-smi", smi], ["nvidia-modprobe", "#!/bin/sh\n"]]) writeFileSync(join(`${home}-driver`, name), text, { mode: 0o755 });
    vernier("run", "-p", "lr=uniform(0,1)", "--minimize", "loss", "-n", "60", "-j", "2", "--name", "live", "--wait=false", "--", "sh", "-c", program, "{lr}");
    const [url, token] = vernier("dashboard").trim().split("#token=");
    at = { url, token, stop: () => vernier("down", "--delete") };
    browser = await launch();
    p = await open(browser, at, "/ns/default/experiments/live");
    await p.locator(".vrow").first().waitFor(slow);
  }, 120_000);
  afterEach(() => expect(problems.splice(0)).toEqual([]));
  afterAll(async () => {
    await browser?.close();
    at?.stop();
    for (const folder of [home, `${home}-driver`]) rmSync(folder, { recursive: true, force: true });
  }, 60_000);
  const said = (text: string | RegExp) => p.getByText(text).first().waitFor(slow);
  const more = async (item: string) => {
    await p.getByRole("button", { name: "More" }).click();
    await p.getByRole("menuitem", { name: item }).click();
  };

  it("pauses and resumes", async () => {
    await p.getByRole("button", { name: "Pause" }).click();
    await said("Paused: no new trials");
    await p.getByRole("button", { name: "Resume" }).click();
    await said("Resumed.");
    await p.getByRole("button", { name: "Pause" }).waitFor(slow);
  });

  it("changes budgets", async () => {
    await p.getByRole("button", { name: "Budgets" }).click();
    await p.getByLabel("Trials at once").fill("3");
    await p.getByLabel("Duration of a trial").fill("1h");
    await p.getByRole("button", { name: "Change" }).click();
    await said("3 at once");
    expect(vernier("get", "experiment", "live", "-o", "yaml")).toContain("maxTrialDuration: 1h");
    await p.getByRole("button", { name: "Budgets" }).click();
    await p.getByLabel("Duration of a trial").fill("");
    await p.getByRole("button", { name: "Change" }).click();
    await expect.poll(() => vernier("get", "experiment", "live", "-o", "yaml"), slow).not.toContain("maxTrialDuration");
  });

  it("keeps notes and tags", async () => {
    await more("Notes and tags");
    await p.getByRole("textbox", { name: "Notes" }).fill("the first try");
    await p.getByRole("textbox", { name: "Tags" }).fill("baseline");
    await p.getByRole("button", { name: "Save", exact: true }).click();
    await p.locator(".tag", { hasText: "baseline" }).waitFor(slow);
  });

  it("tries a point of the user", async () => {
    await more("Try a point of your own");
    await p.getByRole("spinbutton", { name: "lr" }).fill("0.125");
    await p.getByRole("button", { name: "Queue" }).click();
    await said(/^Queued/);
    await p.getByRole("dialog").waitFor({ state: "hidden", ...slow }); // closing it moves the focus, and typing goes where that is
    await p.getByRole("searchbox", { name: "Filter trials" }).fill("lr=0.125");
    await expect.poll(() => p.locator(".vrow").count(), slow).toBe(1);
    await p.keyboard.press("Escape");
  }, 60_000);

  it("follows the log of a trial, stops it, and runs it again", async () => {
    await p.getByRole("searchbox", { name: "Filter trials" }).fill("state=running ORDER BY number DESC");
    await p.locator(".vrow a").first().click();
    const lines = async () => ((await p.getByRole("log").innerText()).match(/loss=/g) ?? []).length;
    await expect.poll(lines, slow).toBeGreaterThan(0);
    const before = await lines();
    await expect.poll(lines, slow).toBeGreaterThan(before);
    await p.getByRole("button", { name: "Stop" }).click();
    await said("The trial was asked to stop.");
    await p.locator(".sub", { hasText: "cancelled" }).waitFor(slow);
    await p.getByRole("button", { name: "Rerun" }).click();
    await said("The point is queued once more.");
  }, 120_000);

  it("shows the log of a trial that has ended", async () => {
    await p.goto(`${at.url}ns/default/experiments/live/trials?q=state%3Dsucceeded`);
    await p.locator(".vrow a").first().click(slow);
    await p.getByRole("log").getByText("epoch=25").first().waitFor(slow);
  }, 60_000);

  it("shows what a trial uses of a GPU, and its files, and saves one", async () => {
    writeFileSync(join(home, "trains.yaml"), trains);
    vernier("run", "-f", join(home, "trains.yaml"), "--wait=false");
    await p.goto(`${at.url}ns/default/experiments/trains/trials`);
    await p.locator(".vrow a").first().click(slow);
    await p.getByRole("heading", { name: "Use of the machine" }).waitFor({ timeout: 60_000 });
    await p.getByRole("button", { name: "Use of the machine: show as table" }).click();
    await p.locator("#plot-machine-0 tbody td:nth-child(3)", { hasText: /^73$/ }).first().waitFor(slow);
    await p.getByRole("link", { name: "Files" }).click();
    const [file] = await Promise.all([p.waitForEvent("download"), p.getByRole("button", { name: "Save epoch-1/model.txt" }).click(slow)]);
    expect(readFileSync((await file.path())!, "utf8")).toBe("weights\n");
    await p.locator(".sub", { hasText: "succeeded" }).waitFor({ timeout: 60_000 });
    // The file outlives the pod, and the mean is a column.
    await p.getByText("epoch-1/model.txt").waitFor(slow);
    await p.goto(`${at.url}ns/default/experiments/trains/trials?cols=number,usage.gpu_utilization,usage.gpu_memory`);
    await p.getByRole("gridcell", { name: "73 %" }).waitFor(slow);
    await p.getByRole("gridcell", { name: "2 GiB" }).waitFor(slow);
    expect(vernier("describe", "trains/0")).toMatch(/system\/gpu0\.utilization_percent +73 +73/);
  }, 240_000);

  it("shows the best within the bounds, and which trials break them", async () => {
    writeFileSync(join(home, "bounded.yaml"), bounded);
    vernier("run", "-f", join(home, "bounded.yaml"));
    await p.goto(`${at.url}ns/default/experiments/bounded`);
    expect(vernier("best", "bounded", "-o", "args").trim()).toBe("--lr=2");
    await p.locator("dt:text-is('Best loss') + dd", { hasText: /^2 trial \d$/ }).waitFor(slow);
    await p.getByRole("gridcell", { name: "100 !" }).waitFor(slow);
    expect(await p.locator(".vrow .bad").allInnerTexts()).toEqual(["100 !"]);
    await p.locator(".vrow", { hasText: "100 !" }).getByRole("link").click();
    await said("It breaks the bound memory <= 50, so it is never the best.");
  }, 60_000);

  it("says of a trial that runs outside that its worker is lost, and who has its log", async () => {
    writeFileSync(join(home, "outside.yaml"), definition("1").replace("from-yaml", "outside"));
    vernier("run", "-f", join(home, "outside.yaml"), "--wait=false");
    const answer = await fetch(`${at.url}vernier.v1.ExperimentService/SuggestTrials`, {
      method: "POST", headers: { Authorization: `Bearer ${at.token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ parent: "namespaces/default/experiments/outside", worker: "box-7", lease: "3s", requestId: "outside-1" }),
    });
    expect(answer.status).toBe(200);
    await p.goto(`${at.url}ns/default/experiments/outside/trials/outside-0000`);
    await said("look where its worker box-7 writes it");
    await p.locator(".sub", { hasText: 'pending · Trial is pending: its worker "box-7" has not reported' }).waitFor(slow);
  }, 60_000);

  it("writes a shared file from the command line", async () => {
    const page = vernier("export", "live", "-o", "html");
    expect(page).toContain('id="snapshot"');
    expect(page.length).toBeGreaterThan(100_000);
  });

  it("creates an experiment from the form, and one from YAML", async () => {
    await p.goto(`${at.url}new`);
    await p.getByLabel("Name", { exact: true }).fill("from-form");
    await p.getByRole("button", { name: "Create" }).click(slow);
    await p.getByRole("heading", { name: "from-form" }).waitFor(slow);
    await p.goto(`${at.url}new`);
    await p.getByText("YAML", { exact: true }).click();
    const editor = p.locator(".cm-content");
    await editor.waitFor();
    const write = async (text: string) => {
      await editor.click();
      await p.keyboard.press("Control+a");
      await p.keyboard.insertText(text);
    };
    await write(definition("one"));
    await p.locator("[aria-label=Check]", { hasText: "max" }).waitFor(slow); // "one" is no number
    expect(await p.getByRole("button", { name: "Create" }).isDisabled()).toBe(true);
    await write(definition("1"));
    await p.getByRole("button", { name: "Create" }).click(slow);
    await p.getByRole("heading", { name: "from-yaml" }).waitFor(slow);
    expect(vernier("get", "experiments")).toContain("from-yaml");
  }, 120_000);

  it("asks for a token again when it has expired, and goes on where it was", async () => {
    await p.goto(`${at.url}ns/default/experiments/live`);
    await p.locator(".vrow").first().waitFor(slow);
    await p.evaluate(() => localStorage.setItem("vernier.token", "expired"));
    await p.reload();
    await p.getByLabel("Token").fill(readFileSync(join(home, "api.token"), "utf8").trim());
    await p.getByRole("button", { name: "Sign in" }).click();
    await p.getByRole("heading", { name: "live" }).waitFor(slow);
    await p.locator(".vrow").first().waitFor(slow);
  }, 60_000);

  it("stops an experiment, and lets its trials finish", async () => {
    writeFileSync(join(home, "finishes.yaml"), trains.replace("name: trains", "name: finishes").replace("maxTrialCount: 1", "maxTrialCount: 9").replace("sleep 25", "sleep 8").replace(/ *resources: .*\n/, ""));
    vernier("run", "-f", join(home, "finishes.yaml"), "--wait=false");
    await p.goto(`${at.url}ns/default/experiments/finishes/trials?q=state%3Drunning`);
    await p.locator(".vrow").first().waitFor(slow);
    await p.getByRole("button", { name: "Stop", exact: true }).click();
    await p.getByRole("button", { name: "Let them finish" }).click();
    await said("It ends when the running trials have.");
    await p.locator(".sub", { hasText: "succeeded" }).first().waitFor(slow);
    const states = (JSON.parse(vernier("get", "trials", "finishes", "-o", "json")) as { items: { status: { conditions: { type: string }[] } }[] }).items.map((t) => t.status.conditions.at(-1)!.type);
    expect(states.length).toBeLessThan(9);
    expect(new Set(states)).toEqual(new Set(["Succeeded"]));
  }, 90_000);

  it("stops an experiment, with its trials, and deletes it", async () => {
    await p.goto(`${at.url}ns/default/experiments/live`);
    const before = count("live");
    await p.getByRole("button", { name: "Stop", exact: true }).click();
    await p.getByRole("button", { name: "Stop them too" }).click();
    await p.locator(".sub", { hasText: /succeeded|failed/ }).waitFor(slow);
    expect(count("live")).toBeGreaterThanOrEqual(before);
    await more("Delete");
    await p.getByRole("button", { name: "Delete" }).click();
    await p.getByRole("heading", { name: "Experiments" }).waitFor(slow);
    await expect.poll(() => vernier("get", "experiments"), slow).not.toContain("live");
  }, 90_000);
});
