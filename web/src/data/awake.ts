import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Whether the page is to be seen. Hidden ones draw nothing and ask for nothing. */
export const awake = signal(!document.hidden);
document.addEventListener("visibilitychange", () => (awake.value = !document.hidden));

/** Asks at once and then every so many milliseconds, while the page is to be seen. */
export function usePolling(ask: () => void, every: number) {
  useEffect(() => {
    if (!awake.value) return;
    ask();
    const timer = setInterval(ask, every);
    return () => clearInterval(timer);
  }, [awake.value]);
}
