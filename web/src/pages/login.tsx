import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { goToProvider, signIn, ways, type Ways } from "../api/session";

export function Login({ why }: { why: string }) {
  const how = useSignal<Ways | null>(null), failed = useSignal("");
  const fail = (err: unknown) => (failed.value = err instanceof Error ? err.message : String(err));
  const ask = () => void ways().then((w) => (how.value = w));
  useEffect(ask, []);
  const { oidc, proxy, trouble } = how.value ?? {};
  return (
    <main class="login">
      <div class="panel">
        <div>
          <img src="icon.svg" width="34" height="34" alt="" />
          <h1 style={{ marginTop: "12px" }}>Vernier</h1>
          <p class="muted" role="status">{failed.value || why || (oidc || proxy ? "Sign in to see your experiments." : "Sign in with a token.")}</p>
        </div>
        {trouble && <p role="alert">{trouble}</p>}
        {trouble && <button type="button" class="button" onClick={ask}>Try again</button>}
        {oidc && <button type="button" class="button primary" onClick={() => void goToProvider(oidc).catch(fail)}>Sign in at {new URL(oidc.endpoint).host}</button>}
        {proxy && <button type="button" class={`button${oidc ? "" : " primary"}`} onClick={() => location.reload()}>Sign in again</button>}
        {how.value && (oidc || proxy ? <details><summary>With a token</summary><Token /></details> : <Token first />)}
      </div>
    </main>
  );
}

function Token({ first }: { first?: boolean }) {
  const token = useSignal("");
  return (
    <form onSubmit={(e) => { e.preventDefault(); if (token.value.trim()) signIn(token.value); }}>
      <label class="field"><span>Token</span>
        <input type="password" autocomplete="current-password" autofocus={first} value={token.value} onInput={(e) => (token.value = e.currentTarget.value)} aria-describedby="how" />
      </label>
      <button class={`button${first ? " primary" : ""}`} type="submit" disabled={!token.value.trim()}>Sign in</button>
      <small id="how" class="muted">On your own machine <code>vernier dashboard</code> prints an address with the token in it. On a cluster it is a token of the cluster, such as one of <code>kubectl create token</code>.</small>
    </form>
  );
}
