// Takes the place of router in a shared file: a file has one address, so pages are
// told apart after its #.
import { computed, signal } from "@preact/signals";

const read = () => location.hash.slice(1) || "/";
const place = signal(read());
addEventListener("hashchange", () => (place.value = read()));

const cut = computed(() => {
  const [before, after = ""] = place.value.split(/\?(.*)/s);
  return { path: before, search: after };
});
export const path = computed(() => decodeURI(cut.value.path).replace(/\/$/, "") || "/");
export const query = computed(() => new URLSearchParams(cut.value.search));

export const search = () => (cut.value.search ? "?" + cut.value.search : "");
export const href = (to: string) => "#" + to;
export const pageKey = () => path.peek();

export function go(to: string, replace = false) {
  if (replace) history.replaceState(null, "", "#" + to);
  else history.pushState(null, "", "#" + to);
  place.value = read();
  if (!replace) scrollTo(0, 0);
}

export function setQuery(changes: Record<string, string | null>) {
  const q = new URLSearchParams(cut.value.search);
  for (const [k, v] of Object.entries(changes)) {
    if (v === null || v === "") q.delete(k);
    else q.set(k, v);
  }
  const text = q.toString();
  if (text !== new URLSearchParams(cut.value.search).toString()) go(cut.value.path + (text ? "?" + text : ""), true);
}
