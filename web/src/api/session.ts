// Who is signed in: by a token that was pasted or came with the address, by one of an
// OpenID provider, or by a proxy, which needs none here.
import { signal } from "@preact/signals";
import { basePath, go, path } from "../router";

/** Why the user has to sign in; null while signed in. */
export const locked = signal<string | null>(null);

/** How people sign in, as the server says. */
export interface Ways {
  oidc?: { endpoint: string; clientId: string; scopes: string[] };
  proxy?: boolean;
  signOut?: string;
  /** Why some of it is not known now. */
  trouble?: string;
}

const keys = { token: "vernier.token", expires: "vernier.expires", login: "vernier.login" };
// Storage is forbidden in some frames: then the token lasts as long as the page.
const stored = (key: string, store = () => localStorage) => { try { return store().getItem(key); } catch { return null; } };
const store = (key: string, value: string | null, into = () => localStorage) => {
  try {
    if (value === null) into().removeItem(key);
    else into().setItem(key, value);
  } catch { /* as above */ }
};

let token = "", expires = 0;
let ended = ""; // the token after which there is no other
function load() {
  token = stored(keys.token) ?? "";
  expires = Number(stored(keys.expires) ?? 0);
}
load();
addEventListener("storage", (e) => {
  if (e.key !== keys.token) return;
  load();
  if (token) locked.value = null;
});

export const current = () => token;

/** Keeps a token; until is when it expires, in seconds, 0 where that is not known. */
export function signIn(t: string, until = 0) {
  token = t.trim();
  expires = until;
  store(keys.expires, until ? String(until) : null);
  store(keys.token, token);
  locked.value = null;
}

const fragment = new URLSearchParams(location.hash.slice(1)).get("token");
if (fragment) {
  signIn(fragment);
  history.replaceState(null, "", location.pathname + location.search);
}

export async function ways(): Promise<Ways> {
  try {
    const answer = await fetch(`${basePath}auth/config`);
    if (!answer.ok) return { trouble: `The server does not say how people sign in: it answers ${answer.status}.` };
    return answer.headers.get("Content-Type")?.includes("json") ? await answer.json() : {}; // a demo has the page there
  } catch {
    return { trouble: "The server cannot be reached." };
  }
}

const post = (what: string, body: object) =>
  fetch(`${basePath}auth/${what}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export async function signOut() {
  if (expires) await post("logout", {}).catch(() => {});
  if (!token) {
    const { signOut } = await ways();
    if (signOut) location.assign(signOut);
    return Boolean(signOut);
  }
  token = "";
  expires = 0;
  store(keys.token, null);
  store(keys.expires, null);
  locked.value = "Signed out.";
  return true;
}

/** The token, renewed if it is about to expire; null when it has, and a renewal is refused. */
export async function fresh(): Promise<string | null> {
  const now = Date.now() / 1000;
  if (!expires || expires - now > 30 || (await renew(token))) return token;
  return expires > now || !isRefused(token) ? token : null;
}

/** Whether there is no token in place of another one. Where the server or the provider cannot be reached, there may be one later. */
export const isRefused = (old: string) => !expires || ended === old;

/** Takes the place of a token that expires. All tabs have one: the first to come asks. */
export async function renew(old: string): Promise<boolean> {
  if (isRefused(old)) return false;
  const ask = async () => {
    load();
    if (token && token !== old) return true;
    const answer = await post("refresh", {}).catch(() => null);
    if (answer?.status === 401) ended = old;
    if (!answer?.ok) return false;
    const s = await answer.json();
    signIn(s.token, s.expires);
    return true;
  };
  return navigator.locks ? navigator.locks.request("vernier-refresh", ask) : ask();
}

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));
const base64url = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const redirect = () => new URL(`${basePath}auth/callback`, location.origin).href;

/** Goes to the provider's page (RFC 6749, section 4.1.1, with RFC 7636). */
export async function goToProvider({ endpoint, clientId, scopes }: NonNullable<Ways["oidc"]>) {
  if (!crypto.subtle) throw new Error("Signing in needs HTTPS.");
  const login = { state: random(), nonce: random(), verifier: random(), back: path.peek() + location.search };
  store(keys.login, JSON.stringify(login), () => sessionStorage);
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(login.verifier))));
  const to = new URL(endpoint);
  const query = { response_type: "code", client_id: clientId, redirect_uri: redirect(), scope: scopes.join(" "), state: login.state, nonce: login.nonce, code_challenge: challenge, code_challenge_method: "S256" };
  for (const [name, value] of Object.entries(query)) to.searchParams.set(name, value);
  location.assign(to);
}

/** Ends the login of a page that the provider has sent the browser to. */
export async function arrive() {
  if (path.peek() !== "/auth/callback") return;
  const says = new URLSearchParams(location.search), login = JSON.parse(stored(keys.login, () => sessionStorage) ?? "{}");
  store(keys.login, null, () => sessionStorage);
  go(login.back ?? "/", true);
  const code = says.get("code");
  if (!code || !login.state || says.get("state") !== login.state) {
    locked.value = says.get("error_description") ?? says.get("error") ?? "This was not a login that began here. Sign in again.";
    return;
  }
  try {
    const answer = await post("token", { code, verifier: login.verifier, nonce: login.nonce, redirect: redirect() });
    const s = await answer.json();
    if (answer.ok) signIn(s.token, s.expires);
    else locked.value = `Signing in failed: ${s.error}`;
  } catch {
    locked.value = "Signing in failed: the server cannot be reached.";
  }
}
