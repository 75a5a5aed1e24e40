// Takes the place of api/live in a shared file, where nothing changes.
import { create } from "@bufbuild/protobuf";
import { signal } from "@preact/signals";
import { GetSeriesRequest_Axis, GetSeriesResponseSchema, type GetSeriesRequest, type WatchResponse } from "../api/gen/vernier/v1/dashboard_pb";
import { snapshot } from "./snapshot";

export const mode = signal<"live" | "polling" | "asleep" | "lost" | "idle">("idle");

const of = (axis: GetSeriesRequest_Axis) => snapshot().curves.find((c) => c.axis === axis)?.series ?? [];

/** Numbers of the trials that the file holds curves of. */
export const heldCurves = (): Set<number> | null => new Set(of(GetSeriesRequest_Axis.STEP).map((s) => s.trial));
/** How many trials were to have curves in the file, and took too long to read. */
export const lateCurves = (): number => new Set(snapshot().curves.flatMap((c) => c.leftOut)).size;

export function watch(topic: { case: string; value: unknown }, take: (c: WatchResponse["change"]) => void): () => void {
  let over = false;
  queueMicrotask(() => {
    if (over) return;
    if (topic.case === "trials") return take({ case: "trials", value: snapshot().trials! });
    const { trials, metrics, axis } = topic.value as GetSeriesRequest;
    take({ case: "series", value: create(GetSeriesResponseSchema, { series: of(axis).filter((s) => trials.includes(s.trial) && metrics.includes(s.metric)) }) });
  });
  return () => { over = true; };
}
