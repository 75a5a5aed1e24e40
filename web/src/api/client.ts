// The service, with the caller's token.
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { signal } from "@preact/signals";
import { DashboardService } from "./gen/vernier/v1/dashboard_pb";
import { current, fresh, isRefused, locked, renew } from "./session";
import { ErrorInfoSchema, ExperimentService } from "./gen/vernier/v1/experiment_pb";

export const online = signal(true);
/** Whether this is a shared file, without a server (see src/shared). */
export const shared: boolean = false;

const authorize: Interceptor = (next) => async (req) => {
  const sent = await fresh();
  if (sent === null) {
    locked.value = "Your sign-in has expired.";
    throw new ConnectError("Your sign-in has expired.", Code.Unauthenticated);
  }
  if (sent) req.header.set("Authorization", `Bearer ${sent}`);
  try {
    const answer = await next(req);
    online.value = true;
    return answer;
  } catch (err) {
    const e = ConnectError.from(err);
    // A stream ends with the token that it began with.
    if (e.code === Code.Unauthenticated && sent === current() && !(await renew(sent)) && isRefused(sent)) {
      locked.value = sent ? "The token is not accepted any more." : "";
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
