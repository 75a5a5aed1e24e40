// The data of a shared file: a Snapshot, compressed, in base64, in a script element
// that is no program.
import { fromBinary } from "@bufbuild/protobuf";
import { SnapshotSchema, type Snapshot } from "../api/gen/vernier/v1/dashboard_pb";

let held: Snapshot | null = null;

/** Reads the data that the page holds. Call it before all else. */
export async function unpack(): Promise<Snapshot> {
  const text = atob(document.getElementById("snapshot")!.textContent!.trim());
  const packed = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (held = fromBinary(SnapshotSchema, new Uint8Array(await new Response(plain).arrayBuffer())));
}

export const snapshot = () => held!;
