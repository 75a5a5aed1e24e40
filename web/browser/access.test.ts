// Who sees what on a cluster: tokens of its accounts, users of an OpenID provider, and
// users of a proxy. The control plane is real, with its roles; the manager is a second
// one, which takes them in place of the one token of an instance, and runs no controllers.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { createHash, createSign, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as ask, type Server } from "node:http";
import { createServer as createTLS } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "playwright-core";
import { binary, launch, missing, open, problems, type Instance } from "./server";

const secret = "topsecret", hidden = `${secret}-search`;
const slow = { timeout: 60_000 };
const port = (s: Server) => (s.address() as AddressInfo).port;
const listen = async <S extends Server>(s: S) => { await new Promise<void>((done) => s.listen(0, "127.0.0.1", done)); return s; };

/** An OpenID provider: discovery, keys, and the authorization code flow with PKCE. */
async function provider(files: string) {
  const key = join(files, "idp.key"), cert = join(files, "idp.crt");
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
  const pem = readFileSync(key, "utf8"), codes = new Map<string, URLSearchParams>();
  const jwk = { ...(await import("node:crypto")).createPublicKey(pem).export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" };
  const idp = { url: "", cert, email: "ann@example.com", lasts: 300, refresh: "", renewed: 0, stop: () => {} };
  const encode = (o: object) => Buffer.from(JSON.stringify(o)).toString("base64url");
  const sign = (nonce?: string) => {
    const now = Math.floor(Date.now() / 1000);
    const text = `${encode({ alg: "RS256", kid: "1" })}.${encode({ iss: idp.url, aud: "vernier", sub: "1", email: idp.email, email_verified: true, nonce, iat: now, exp: now + idp.lasts })}`;
    return `${text}.${createSign("RSA-SHA256").update(text).sign(pem, "base64url")}`;
  };
  const server = await listen(createTLS({ key: pem, cert: readFileSync(cert) }, (req, res) => {
    const at = new URL(req.url!, idp.url), json = (o: object, code = 200) => res.writeHead(code, { "Content-Type": "application/json" }).end(JSON.stringify(o));
    if (at.pathname === "/.well-known/openid-configuration") {
      json({ issuer: idp.url, authorization_endpoint: `${idp.url}/authorize`, token_endpoint: `${idp.url}/token`, jwks_uri: `${idp.url}/keys` });
    } else if (at.pathname === "/keys") json({ keys: [jwk] });
    else if (at.pathname === "/authorize") {
      const code = randomBytes(8).toString("hex"), q = at.searchParams;
      codes.set(code, q);
      const back = new URL(q.get("redirect_uri")!);
      back.searchParams.set("code", code);
      back.searchParams.set("state", q.get("state")!);
      res.writeHead(200, { "Content-Type": "text/html" }).end(`<h1>Your company</h1><a href="${back.href.replaceAll("&", "&amp;")}">I am ${idp.email}</a>`);
    } else {
      let body = "";
      req.on("data", (d) => (body += d)).on("end", () => {
        const says = new URLSearchParams(body), q = codes.get(says.get("code") ?? "");
        codes.delete(says.get("code") ?? "");
        const fits = q && createHash("sha256").update(says.get("code_verifier")!).digest("base64url") === q.get("code_challenge");
        if (says.get("grant_type") === "refresh_token" ? says.get("refresh_token") !== idp.refresh : !fits) return json({ error: "invalid_grant" }, 400);
        if (!q) idp.renewed++;
        idp.refresh = randomBytes(8).toString("hex");
        json({ access_token: "a", token_type: "Bearer", expires_in: idp.lasts, refresh_token: idp.refresh, id_token: sign(q?.get("nonce") ?? undefined) });
      });
    }
  }) as unknown as Server);
  idp.url = `https://127.0.0.1:${port(server)}`;
  idp.stop = () => server.close();
  return idp;
}

describe.skipIf(missing)("on a cluster", () => {
  let browser: Browser, home: string, files: string, manager: ChildProcess, at: Instance, idp: Awaited<ReturnType<typeof provider>>;
  const tokens = { viewer: "", stranger: "" }, pages: Page[] = [];
  const vernier = (args: string[], input = "") => execFileSync(binary, ["--home", home, ...args], { encoding: "utf8", input, stdio: ["pipe", "pipe", "pipe"] });
  const kubectl = (...args: string[]) => vernier(["kubectl", ...args]);
  const visit = async (who: string, path: string) => {
    const p = await open(browser, { ...at, token: who }, path);
    pages.push(p);
    return p;
  };
  beforeAll(async () => {
    [home, files] = ["vernier-access-", "vernier-files-"].map((name) => mkdtempSync(join(tmpdir(), name)));
    browser = await launch();
    idp = await provider(files);
    vernier(["run", "-p", `${secret}-rate=uniform(0,1)`, "--minimize", `${secret}-loss`, "-n", "2", "-j", "2", "--name", hidden, "--", "sh", "-c", `echo ${secret}-loss=0.5`]);
    kubectl("create", "namespace", "theirs");
    for (const name of Object.keys(tokens) as (keyof typeof tokens)[]) {
      kubectl("create", "serviceaccount", name, "-n", "theirs");
      tokens[name] = kubectl("create", "token", name, "-n", "theirs").trim();
    }
    const view = (ns: string, ...who: string[]) => kubectl("create", "rolebinding", "view-" + who[0].replace(/\W+/g, "-"), "-n", ns, "--clusterrole=view-experiments", ...who);
    kubectl("create", "clusterrole", "view-experiments", "--verb=get,list,watch", "--resource=experiments.kubeflow.org,trials.kubeflow.org");
    view("default", "--serviceaccount=theirs:viewer");
    view("default", "--user=ann@example.com");
    // A lease that another one has keeps this manager from running controllers.
    kubectl("create", "namespace", "vernier-access");
    writeFileSync(join(files, "lease.yaml"), `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: vernier-manager, namespace: vernier-access}, spec: {holderIdentity: other, leaseDurationSeconds: 86400, acquireTime: "${new Date().toISOString().replace("Z", "000Z")}", renewTime: "${new Date().toISOString().replace("Z", "000Z")}"}}`);
    kubectl("apply", "-f", join(files, "lease.yaml"));
    const free = await listen(createServer()), p = port(free);
    free.close();
    writeFileSync(join(files, "proxy.secret"), "0123456789abcdef");
    manager = spawn(join(dirname(binary), "manager"), ["--kubeconfig", vernier(["kubeconfig"]).trim(), "--namespace=vernier-access", "--leader-elect", "--store=memory:", "--katib-bind-address=0",
      "--metrics-bind-address=0", "--health-probe-bind-address=0", "--webhook-bind-address=0", `--report-bind-address=127.0.0.1:${p}`, `--report-url=http://127.0.0.1:${p}`, `--report-key-file=${join(files, "key")}`,
      `--oidc-issuer-url=${idp.url}`, "--oidc-client-id=vernier", `--oidc-ca-file=${idp.cert}`, "--oidc-username-claim=email", "--oidc-scopes=openid,email,offline_access",
      "--requestheader-username-headers=kubeflow-userid", `--requestheader-secret=file:${join(files, "proxy.secret")}`, "--dashboard-base-path=/tune/", "--log-level=WARN"], { stdio: ["ignore", "inherit", "inherit"] });
    at = { url: `http://127.0.0.1:${p}/tune/`, stop: () => manager.kill() };
    for (let i = 0; (await fetch(at.url).then((r) => r.status, () => 0)) !== 200; i++) {
      if (i > 300) throw new Error("the manager does not answer");
      await new Promise((done) => setTimeout(done, 200));
    }
  }, 240_000);
  afterEach(async () => {
    await Promise.all(pages.splice(0).map((p) => p.context().close()));
    expect(problems.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    manager?.kill();
    idp?.stop();
    try { vernier(["down", "--delete"]); } catch { /* it did not come up */ }
    for (const dir of [home, files]) rmSync(dir, { recursive: true, force: true });
  }, 60_000);

  // Every address that the dashboard has, of an experiment.
  const addresses = (ns: string, e: string) => {
    const of = `/ns/${ns}/experiments/${e}`;
    return ["/", "/?find=top&state=succeeded", `/ns/${ns}`, of, `${of}/trials`, `${of}/trials?q=state%3Dsucceeded&s=0,1&cols=number,params.x&sort=-number`, `${of}/analysis`, `${of}/definition`,
      `${of}/compare?s=0,1`, `${of}/trials/${e}-0000`, `${of}/other`, "/new", `/new?ns=${ns}`, `/new?from=${encodeURIComponent(`namespaces/${ns}/experiments/${e}`)}`, "/cluster", "/other"];
  };
  /** What a page shows in the end, and all that it was answered. */
  const seen = async (who: string, path: string, name: string) => {
    const p = await visit(who, "/other"), answers: string[] = [];
    p.on("response", (r) => void r.body().then((b) => answers.push(b.toString("latin1")), () => {}));
    await p.goto(at.url + path.slice(1));
    await p.locator("h1, h2, .empty").first().waitFor();
    await p.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => {}); // a stream may stay
    await p.getByText("Checking…").waitFor({ state: "detached" });
    const text = await p.locator("main").innerText();
    await p.context().close();
    pages.pop();
    return { text: text.replaceAll(name, "NAME"), answers: answers.filter((a) => !a.startsWith("import ") && a.length < 200_000).join("\n").replaceAll(name, "NAME") };
  };

  it("shows what is there to those who may see it", async () => {
    const p = await visit(tokens.viewer, `/ns/default/experiments/${hidden}`);
    await p.locator(".vrow").first().waitFor(slow);
    expect(await p.locator("main").innerText()).toContain(`${secret}-loss`);
    await p.goto(at.url);
    await p.getByRole("link", { name: hidden }).waitFor(slow);
  }, 120_000);

  it("shows a stranger nothing on any page, and the same of what is there as of what is not", async () => {
    const missingPages = addresses("default", "no-such-search");
    for (const [i, path] of addresses("default", hidden).entries()) {
      const there = await seen(tokens.stranger, path, hidden), none = await seen(tokens.stranger, missingPages[i], "no-such-search");
      expect(there.text, path).toBe(none.text);
      expect(`${there.text}\n${there.answers}`, path).not.toContain(secret);
    }
    const nowhere = await seen(tokens.stranger, "/ns/no-such-namespace", "no-such-namespace");
    expect((await seen(tokens.stranger, "/ns/default", "default")).text).toBe(nowhere.text);
  }, 600_000);

  it("answers a guess of an address of the API as it answers any other", async () => {
    const call = (method: string, body: string, who = tokens.stranger) =>
      fetch(`${at.url}vernier.v1.${method}`, { method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${who}` }, body }).then(async (r) => `${r.status} ${await r.text()}`);
    for (const method of ["ExperimentService/GetExperiment", "DashboardService/Describe"]) {
      const of = (name: string) => call(method, JSON.stringify({ name: `namespaces/default/experiments/${name}` }));
      expect((await of(hidden)).replaceAll(hidden, "NAME")).toBe((await of("nothing")).replaceAll("nothing", "NAME"));
    }
    for (const path of ["openapi.yaml", "auth/config", "", "ns/default"]) {
      expect(await (await fetch(at.url + path)).text(), path).not.toContain(secret);
    }
    expect(await call("DashboardService/ListNamespaces", "{}")).toBe("200 {}");
  });

  it("lets people sign in at their provider, renews the token, and says when it cannot", async () => {
    idp.lasts = 32; // it is renewed 30 s before its end
    const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 800 } }), p = await context.newPage();
    pages.push(p);
    p.setDefaultTimeout(40_000);
    await p.goto(`${at.url}ns/default/experiments/${hidden}/trials?q=state%3Dsucceeded`);
    await p.getByRole("button", { name: `Sign in at ${new URL(idp.url).host}` }).click();
    await p.getByText("I am ann@example.com").click();
    await p.locator(".vrow").first().waitFor();
    expect(p.url()).toBe(`${at.url}ns/default/experiments/${hidden}/trials?q=state%3Dsucceeded`);
    expect(await p.evaluate(() => document.cookie)).toBe("");
    expect((await context.cookies()).map((c) => [c.name, c.httpOnly, c.secure, c.sameSite, c.path])).toEqual([["__Secure-vernier-refresh", true, true, "Strict", "/tune/auth/"]]);
    await p.waitForTimeout(2_500);
    await p.getByRole("link", { name: "Definition and events" }).click();
    await expect.poll(() => idp.renewed, slow).toBeGreaterThan(0);
    await p.getByText("Conditions").first().waitFor();
    idp.refresh = "ended"; // the company ends her session
    await p.evaluate(() => localStorage.setItem("vernier.expires", "1")); // as if half a minute had passed
    await p.reload();
    await p.getByText("Your sign-in has expired.").waitFor();
    await p.getByRole("button", { name: /Sign in at/ }).click();
    await p.getByText("I am ann@example.com").click();
    await p.getByText("Conditions").first().waitFor();
    await p.getByRole("button", { name: "Sign out" }).click();
    await p.getByText("Signed out.").waitFor();
    expect(await context.cookies()).toEqual([]);
    idp.email = "eve@example.com";
    await p.getByRole("button", { name: /Sign in at/ }).click();
    await p.getByText("I am eve@example.com").click();
    await p.getByText("may not get experiments").first().waitFor();
    expect(await p.locator("body").innerText()).not.toContain(`${secret}-loss`);
  }, 180_000);

  it("believes the proxy, and not those who come round it", async () => {
    let user = "ann@example.com";
    const proxy = await listen(createServer((req, res) => {
      const on = ask(at.url, { path: req.url, method: req.method, headers: { ...req.headers, host: req.headers.host!, "kubeflow-userid": user, "x-vernier-proxy-secret": "0123456789abcdef" } }, (from) => {
        res.writeHead(from.statusCode!, from.headers);
        from.pipe(res);
      });
      on.on("error", () => res.destroy());
      res.on("close", () => on.destroy());
      req.pipe(on);
    }));
    try {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } }), p = await context.newPage();
      pages.push(p);
      await p.goto(`http://127.0.0.1:${port(proxy)}/tune/ns/default/experiments/${hidden}`);
      await p.locator(".vrow").first().waitFor(slow);
      await p.getByRole("button", { name: "Sign out" }).click();
      await p.getByText("The proxy in front of this dashboard signs people in and out.").waitFor();
      user = "eve@example.com";
      await p.reload();
      await p.getByText("may not get experiments").first().waitFor(slow);
      const round = await browser.newContext({ extraHTTPHeaders: { "kubeflow-userid": "ann@example.com" } }), q = await round.newPage();
      pages.push(q);
      await q.goto(`${at.url}ns/default/experiments/${hidden}`);
      await q.getByText("Sign in to see your experiments.").waitFor(slow);
      expect(await q.locator("body").innerText()).not.toContain(`${secret}-loss`);
    } finally {
      proxy.close();
      proxy.closeAllConnections();
    }
  }, 120_000);
});
