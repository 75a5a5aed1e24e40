// The address is the state: pages by path, what is chosen on them by query.
import { computed, signal } from "@preact/signals";

const base = new URL(document.baseURI).pathname.replace(/\/?$/, "/");
export const basePath = base;

const read = () => ({ path: "/" + decodeURI(location.pathname).slice(base.length), search: location.search });
const place = signal(read());
addEventListener("popstate", () => (place.value = read()));

export const path = computed(() => place.value.path.replace(/\/$/, "") || "/");
export const query = computed(() => new URLSearchParams(place.value.search));

/** The query as it stands in the address, with its question mark. */
export const search = () => location.search;
/** What tells this page from others. */
export const pageKey = () => location.pathname;

export const href = (to: string) => base + to.replace(/^\//, "");

export function go(to: string, replace = false) {
  const url = href(to);
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  const before = place.value.path;
  place.value = read();
  if (!replace && place.value.path !== before) {
    scrollTo(0, 0);
    requestAnimationFrame(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
  }
}

/** Sets or, with null, removes words of the query, without a step in the history. */
export function setQuery(changes: Record<string, string | null>) {
  const q = new URLSearchParams(place.value.search);
  for (const [k, v] of Object.entries(changes)) {
    if (v === null || v === "") q.delete(k);
    else q.set(k, v);
  }
  const text = q.toString();
  if (text === new URLSearchParams(place.value.search).toString()) return;
  history.replaceState(null, "", location.pathname + (text ? "?" + text : ""));
  place.value = read();
}

// Links inside the dashboard stay in this document.
addEventListener("click", (e) => {
  const a = (e.target as Element | null)?.closest?.("a");
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.hasAttribute("download")) return;
  const url = new URL(a.href);
  if (url.origin !== location.origin || !url.pathname.startsWith(base)) return;
  e.preventDefault();
  go(url.pathname.slice(base.length) + url.search);
});
