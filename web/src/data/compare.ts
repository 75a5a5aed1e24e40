// Trials beside each other, line by line.
import { formatDuration, formatValue, STATES, type TrialTable } from "./trials";

export interface Line {
  name: string;
  kind: "" | "metric" | "parameter";
  /** For people, who see four digits. */
  cells: string[];
  values: (number | string)[];
}

export function linesOf(table: TrialTable, rows: number[]): Line[] {
  const line = (name: string, kind: Line["kind"], key: string, cell: (row: number) => string): Line =>
    ({ name, kind, cells: rows.map(cell), values: rows.map((r) => table.column(key)!(r)) });
  return [
    line("state", "", "state", (r) => STATES[table.state[r]]),
    ...[...table.metrics].map(([m, v]) => line(m, "metric", `metrics.${m}`, (r) => formatValue(v[r]) + (table.broken(r)?.metric === m ? " !" : ""))),
    ...table.specs.map((s) => line(s.name, "parameter", `params.${s.name}`, (r) => table.text(s, table.params.get(s.name)![r]) || "–")),
    line("duration", "", "duration", (r) => formatDuration(table.duration(r))),
  ];
}

/** Whether it is a parameter with one value in all of them. */
export const isSame = (l: Line) => l.kind === "parameter" && new Set(l.values).size === 1;
