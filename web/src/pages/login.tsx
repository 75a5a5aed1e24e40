import { useSignal } from "@preact/signals";
import { signIn } from "../api/client";

export function Login({ why }: { why: string }) {
  const token = useSignal("");
  return (
    <main class="login">
      <form class="panel" onSubmit={(e) => { e.preventDefault(); if (token.value.trim()) signIn(token.value); }}>
        <div>
          <img src="icon.svg" width="34" height="34" alt="" />
          <h1 style={{ marginTop: "12px" }}>Vernier</h1>
          <p class="muted">{why || "Sign in with a token."}</p>
        </div>
        <label class="field"><span>Token</span>
          <input type="password" autocomplete="current-password" autofocus value={token.value} onInput={(e) => (token.value = e.currentTarget.value)} aria-describedby="how" />
        </label>
        <button class="button primary" type="submit" disabled={!token.value.trim()}>Sign in</button>
        <small id="how" class="muted">On your own machine <code>vernier dashboard</code> prints an address with the token in it. On a cluster it is a token of the cluster, such as one of <code>kubectl create token</code>.</small>
      </form>
    </main>
  );
}
