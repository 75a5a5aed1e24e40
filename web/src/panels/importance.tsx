import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { AnalyzeRequest_Importance_Method as Method } from "../api/gen/vernier/v1/dashboard_pb";
import type { Model } from "../data/experiment";
import type { View } from "../data/view";
import { Plot } from "../plot/plot";
import type { Size, Surface } from "../plot/surface";
import type { Theme } from "../plot/theme";
import { clip } from "../plot/xy";
import { Segments } from "../ui/ui";
import { answered, useAnswer } from "./ask";

/** What only several parameters together explain. */
const together = "(several together)";

/** How much each parameter matters, the most first. A click shows it in the others. */
export function Importance({ model, view, pick }: { model: Model; view: View; pick: (name: string) => void }) {
  const method = useSignal<"ped" | "forest">("forest"), over = useSignal(-1);
  const asked = useAnswer(model, view, { case: "importance", value: { $typeName: "vernier.v1.AnalyzeRequest.Importance", method: method.value === "ped" ? Method.PED_ANOVA : Method.F_ANOVA } });
  const bars = () => {
    const a = asked.value.answer;
    if (a?.case !== "importance") return [];
    const bars = a.value.parameters.map((name, i) => ({ name, share: a.value.shares[i] })).sort((a, b) => b.share - a.share);
    return a.value.interactions > 0 ? [...bars, { name: together, share: a.value.interactions }] : bars;
  };
  const step = (size: Size, n: number) => Math.min(34, (size.height - 16) / Math.max(1, n));
  const draw = useMemo(() => (g: Surface, size: Size, t: Theme) => {
    const all = bars(), h = step(size, all.length);
    g.font = `12px ${t.font}`;
    const left = Math.min(140, 16 + Math.max(0, ...all.map((b) => g.measureText(b.name).width))), right = 52;
    all.forEach((b, i) => {
      const y = 8 + i * h;
      if (i === over.value) {
        g.fillStyle = t.grid;
        g.fillRect(2, y, size.width - 4, h);
      }
      g.textBaseline = "middle";
      g.textAlign = "right";
      g.fillStyle = t.text;
      g.fillText(clip(g, b.name, left - 10), left, y + h / 2);
      g.fillStyle = t.accent;
      g.globalAlpha = 0.85;
      g.fillRect(left + 10, y + h * 0.22, Math.max(1, b.share * (size.width - left - right - 20)), h * 0.56);
      g.globalAlpha = 1;
      g.fillStyle = t.muted;
      g.fillText(`${(b.share * 100).toFixed(b.share < 0.1 ? 1 : 0)} %`, size.width - 8, y + h / 2);
    });
  }, []);
  return (
    <Plot id="importance" title="Importance" height={320} draw={draw} cursor="pointer" note={() => answered(asked.value, view.table)}
      label={() => `How much each parameter matters: ${bars().slice(0, 3).map((b) => `${b.name} ${Math.round(b.share * 100)} %`).join(", ")}.`}
      empty={() => asked.value.error || (asked.value.answer ? (bars().length ? null : "There are too few results yet.") : "Asking…")}
      controls={<Segments label="Method" value={method.value} options={[["forest", "fANOVA"], ["ped", "PED-ANOVA"]]} set={(v) => (method.value = v)} />}
      pointer={(e, at, size) => {
        const all = bars(), i = Math.floor((at.y - 8) / step(size, all.length));
        over.value = e.type === "pointerleave" || i < 0 || i >= all.length ? -1 : i;
        if (e.type === "pointerup" && over.value >= 0 && all[i].name !== together) pick(all[i].name);
      }}
      table={() => ({ head: ["parameter", "share"], rows: bars().map((b) => [b.name, +b.share.toFixed(4)]) })} />
  );
}
