import { signal, type Signal } from "@preact/signals";
import { pageKey } from "../router";
import type { Zoom } from "../plot/xy";

const zooms = new Map<string, Signal<Zoom | null>>();

/** The zoom of a panel: it stays while one goes to another page and back. */
export function zoomIn(id: string): Signal<Zoom | null> {
  const key = pageKey() + " " + id;
  let z = zooms.get(key);
  if (!z) zooms.set(key, (z = signal(null)));
  return z;
}
