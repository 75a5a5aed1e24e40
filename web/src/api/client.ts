// The service, with the caller's token.
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { signal } from "@preact/signals";
import { DashboardService } from "./gen/vernier/v1/dashboard_pb";
import { ErrorInfoSchema, ExperimentService } from "./gen/vernier/v1/experiment_pb";

const key = "vernier.token";

/** Why the token is asked for; null while it works. */
export const locked = signal<string | null>(null);
export const online = signal(true);
/** Whether this is a shared file, without a server (see src/shared). */
export const shared: boolean = false;

let token = "";
try {
  token = localStorage.getItem(key) ?? "";
} catch { /* storage is forbidden, as in some frames: the token lasts as long as the page */ }
const fragment = new URLSearchParams(location.hash.slice(1)).get("token");
if (fragment) {
  signIn(fragment);
  history.replaceState(null, "", location.pathname + location.search);
}

export function signIn(t: string) {
  token = t.trim();
  locked.value = null;
  try {
    localStorage.setItem(key, token);
  } catch { /* as above */ }
}

export function signOut() {
  token = "";
  try {
    localStorage.removeItem(key);
  } catch { /* as above */ }
  locked.value = "Signed out.";
}

const authorize: Interceptor = (next) => async (req) => {
  if (token) req.header.set("Authorization", `Bearer ${token}`);
  const sent = token;
  try {
    const answer = await next(req);
    online.value = true;
    return answer;
  } catch (err) {
    const e = ConnectError.from(err);
    if (e.code === Code.Unauthenticated && sent === token) {
      locked.value = token ? "The token is not accepted any more." : "";
    }
    if (e.code !== Code.Canceled) online.value = e.code !== Code.Unavailable && !(err instanceof TypeError) && e.code !== Code.Unknown;
    throw err;
  }
};

const transport = createConnectTransport({
  baseUrl: new URL(".", document.baseURI).href.replace(/\/$/, ""),
  useBinaryFormat: true,
  interceptors: [authorize],
});

export const experiments = createClient(ExperimentService, transport);
export const dashboard = createClient(DashboardService, transport);

/** An error as a person reads it: what is wrong, and what to do. */
export function explain(err: unknown): { text: string; remedy: string; reason: string } {
  const e = ConnectError.from(err);
  const info = e.findDetails(ErrorInfoSchema)[0];
  if (e.code === Code.Unimplemented) return { text: "This server cannot do that yet.", remedy: "Upgrade it.", reason: "UNIMPLEMENTED" };
  if (e.code === Code.Unknown && /fetch|network/i.test(e.rawMessage)) {
    return { text: "The server cannot be reached.", remedy: "It is tried again by itself.", reason: "UNREACHABLE" };
  }
  return { text: e.rawMessage || "Something went wrong.", remedy: info?.remedy ?? "", reason: info?.reason ?? "" };
}

export const isAborted = (err: unknown) => ConnectError.from(err).code === Code.Canceled;
