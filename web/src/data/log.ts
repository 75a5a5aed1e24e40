// The log of a trial, while the page is to be seen: a stream of a hidden tab would hold
// one of the six connections that browsers open to a server without TLS.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { effect } from "@preact/signals";
import { awake } from "./awake";
import { dashboard, isAborted } from "../api/client";
import type { ReadLogsRequestSchema } from "../api/gen/vernier/v1/dashboard_pb";

const mostLog = 2_000_000;

/** Reads a log until the answer is called, and again where it breaks off if that is wanted. */
export function readLog(ask: MessageInitShape<typeof ReadLogsRequestSchema>, again: boolean, show: (text: string) => void, note: (text: string) => void): () => void {
  return effect(() => {
    if (!awake.value) return;
    const stop = new AbortController();
    void follow(ask, again, show, note, stop.signal);
    return () => stop.abort();
  });
}

async function follow(ask: MessageInitShape<typeof ReadLogsRequestSchema>, again: boolean, show: (text: string) => void, note: (text: string) => void, signal: AbortSignal) {
  for (let wait = 1000; !signal.aborted; wait = Math.min(wait * 2, 10_000)) {
    const decoder = new TextDecoder();
    let text = "", frame = 0;
    const put = () => {
      frame = 0;
      if (!signal.aborted) show((text = text.slice(-mostLog)));
    };
    put(); // the tail is read again
    try {
      for await (const m of dashboard.readLogs(ask, { signal, timeoutMs: 0 })) {
        if (m.note) note(m.note);
        text += decoder.decode(m.text, { stream: true });
        frame ||= requestAnimationFrame(put);
      }
      return;
    } catch (err) {
      if (signal.aborted || isAborted(err)) return;
      note((err as Error).message.replace(/^\[\w+\] /, ""));
      if (!again) return;
    }
    await new Promise((r) => setTimeout(r, wait));
  }
}
