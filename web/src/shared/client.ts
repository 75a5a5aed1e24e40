// Takes the place of api/client in a shared file: what the file holds answers.
import { Code, ConnectError } from "@connectrpc/connect";
import { signal } from "@preact/signals";
import type { AnalyzeRequest, AnalyzeResponse, AnalyzeResponse_Contour } from "../api/gen/vernier/v1/dashboard_pb";
import { snapshot } from "./snapshot";

export const shared: boolean = true;
export const online = signal(true);

const absent = (what: string) => Promise.reject(new ConnectError(`This file does not hold ${what}.`, Code.NotFound));
// Everything else that a server does.
const nothing = { get: (known: object, name: string) => Reflect.get(known, name) ?? (() => absent("that: it is a copy, which nothing can be done to")) };

export const experiments = new Proxy({
  getExperiment: () => Promise.resolve(snapshot().experiment!),
  getTrial: () => absent("more of this trial"),
}, nothing);

export const dashboard = new Proxy({
  listTrialColumns: () => Promise.resolve(snapshot().trials!),
  describe: ({ name }: { name: string }) => (name.includes("/trials/") ? absent("more of this trial") : Promise.resolve(snapshot().about!)),
  analyze: (asked: Pick<AnalyzeRequest, "objective" | "question">): Promise<Pick<AnalyzeResponse, "answer" | "results">> => {
    for (const { request, response } of snapshot().answers) {
      if (!request || !response || request.objective !== asked.objective) continue;
      const known = request.question, want = asked.question;
      if (known.case === "contour" && want.case === "contour") {
        if (known.value.x === want.value.x && known.value.y === want.value.y) return Promise.resolve(response);
        if (known.value.x === want.value.y && known.value.y === want.value.x) return Promise.resolve(turned(response));
      } else if (known.case === "importance" && want.case === "importance") {
        if (known.value.method === want.value.method) return Promise.resolve(response);
      } else if (known.case === want.case) return Promise.resolve(response);
    }
    return absent(asked.question.case === "contour" ? "the contour of these two parameters: it has those of the most important ones" : "the answer: there were too few results, or too little time to make it");
  },
}, nothing);

/** The contour with its axes exchanged. */
function turned(r: AnalyzeResponse): Pick<AnalyzeResponse, "answer" | "results"> {
  const c = r.answer.value as AnalyzeResponse_Contour, length = (a = c.x) => a!.text?.index.length || a!.number.length;
  const nx = length(c.x), ny = length(c.y);
  return { results: r.results, answer: { case: "contour", value: { ...c, x: c.y, y: c.x, z: c.z.map((_, k) => c.z[(k % ny) * nx + Math.floor(k / ny)]) } } };
}

export function explain(err: unknown): { text: string; remedy: string; reason: string } {
  return { text: ConnectError.from(err).rawMessage, remedy: "", reason: "" };
}

export const isAborted = (err: unknown) => ConnectError.from(err).code === Code.Canceled;
