import { signal } from "@preact/signals";

/** Whether the page is to be seen. Hidden ones draw nothing and ask for nothing. */
export const awake = signal(!document.hidden);
document.addEventListener("visibilitychange", () => (awake.value = !document.hidden));
