// What the results say: which parameters matter, how, and what is best of two.
import { useComputed, useSignal } from "@preact/signals";
import type { Model } from "../data/experiment";
import type { View } from "../data/view";
import { Contour } from "../panels/contour";
import { Importance } from "../panels/importance";
import { Distribution } from "../panels/distribution";
import { Pareto } from "../panels/pareto";
import { Rank, Slice } from "../panels/slice";
import { Timeline } from "../panels/timeline";
import { Select } from "../ui/ui";

export function Analysis({ model, view }: { model: Model; view: View }) {
  const names = view.table.varied.map((s) => s.name);
  const x = useSignal(names[0] ?? ""), y = useSignal(names[1] ?? names[0] ?? "");
  const choose = useComputed(() => (
    <>
      <Select label="Horizontal parameter" value={x.value} options={names} set={(v) => (x.value = v)} />
      <Select label="Vertical parameter" value={y.value} options={names} set={(v) => (y.value = v)} />
    </>
  ));
  const one = <Select label="Parameter" value={x.value} options={names} set={(v) => (x.value = v)} />;
  return (
    <div class="panels three">
      <Importance model={model} view={view} pick={(name) => { if (name !== x.value) { y.value = x.value; x.value = name; } }} />
      <Slice view={view} name={x.value} controls={one} />
      <Contour model={model} view={view} x={x.value} y={y.value} controls={choose.value} />
      <Rank view={view} x={x.value} y={y.value} controls={choose.value} />
      <Distribution view={view} />
      <Pareto model={model} view={view} />
      <Timeline view={view} />
    </div>
  );
}
