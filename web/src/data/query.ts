// The query language of trials: comparisons joined by AND, OR and NOT, and at the
// end ORDER BY. A word alone looks for trials whose name or state contains it.
//
//   state=RUNNING AND params.lr<1e-3 AND metrics.loss<0.4 ORDER BY metrics.loss
import type { TrialTable } from "./trials";

export interface Query {
  matches: (row: number) => boolean;
  order: { key: string; descending: boolean }[];
}

export class QueryError extends Error {}

type Test = (row: number) => boolean;
const token = /\s*(?:(>=|<=|!=|=|<|>|:|\(|\)|,)|"((?:[^"\\]|\\.)*)"|([^\s<>=!:(),"]+))/y;

interface Word { text: string; kind: "sign" | "quoted" | "word" }

function split(text: string): Word[] {
  const out: Word[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < text.trimEnd().length) {
    const at = token.lastIndex;
    const m = token.exec(text);
    if (!m) throw new QueryError(`cannot read ${JSON.stringify(text.slice(at).trim().slice(0, 20))}`);
    if (m[1]) out.push({ text: m[1], kind: "sign" });
    else if (m[2] !== undefined) out.push({ text: m[2].replace(/\\(.)/g, "$1"), kind: "quoted" });
    else out.push({ text: m[3], kind: "word" });
  }
  return out;
}

/** Reads a query for the columns of a table. Throws QueryError with what is wrong. */
export function parseQuery(text: string, table: TrialTable): Query {
  const words = split(text);
  let at = 0;
  const is = (s: string) => words[at]?.kind !== "quoted" && words[at]?.text.toUpperCase() === s;
  const take = (s: string) => is(s) && (at++, true);

  function or(): Test {
    const parts = [and()];
    while (take("OR")) parts.push(and());
    return parts.length === 1 ? parts[0] : (i) => parts.some((p) => p(i));
  }
  function and(): Test {
    const parts = [not()];
    while (at < words.length && !is(")") && !is("OR") && !is("ORDER")) {
      take("AND");
      parts.push(not());
    }
    return parts.length === 1 ? parts[0] : (i) => parts.every((p) => p(i));
  }
  function not(): Test {
    if (take("NOT")) {
      const t = not();
      return (i) => !t(i);
    }
    if (take("(")) {
      const t = or();
      if (!take(")")) throw new QueryError("a parenthesis is not closed");
      return t;
    }
    return compare();
  }
  function compare(): Test {
    const key = words[at++];
    if (!key || key.kind === "sign" || (key.kind === "word" && /^(and|or|not|order|by)$/i.test(key.text))) throw new QueryError("a condition is missing" + (key ? ` before ${key.text}` : " at the end"));
    const sign = words[at];
    if (!sign || sign.kind !== "sign" || sign.text === "(" || sign.text === ")" || sign.text === ",") {
      const needle = key.text.toLowerCase();
      const name = table.column("name")!, state = table.column("state")!;
      return (i) => String(name(i)).toLowerCase().includes(needle) || String(state(i)).includes(needle);
    }
    at++;
    const value = words[at++];
    if (!value || value.kind === "sign") throw new QueryError(`a value is missing after ${key.text} ${sign.text}`);
    const column = table.column(key.text);
    if (!column) throw new QueryError(`no column ${key.text}; there are number, state, duration, ${known(table)}`);
    return comparison(column, sign.text, value.text);
  }

  const order: Query["order"] = [];
  const matches = words.length === 0 || is("ORDER") ? () => true : or();
  if (take("ORDER")) {
    if (!take("BY")) throw new QueryError("ORDER needs BY");
    do {
      const key = words[at++];
      if (!key || !table.column(key.text)) throw new QueryError(`no column ${key?.text ?? "after ORDER BY"}`);
      order.push({ key: key.text, descending: take("DESC") || (take("ASC"), false) });
    } while (take(","));
  }
  if (at < words.length) throw new QueryError(`${words[at].text} is not expected here`);
  return { matches, order };
}

function known(table: TrialTable): string {
  const all = [...table.specs.map((s) => `params.${s.name}`), ...[...table.metrics.keys()].map((m) => `metrics.${m}`)];
  return all.slice(0, 6).join(", ") + (all.length > 6 ? ", …" : "");
}

function comparison(column: (i: number) => number | string, sign: string, value: string): Test {
  const number = Number(value);
  const lower = value.toLowerCase();
  switch (sign) {
    case ":": return (i) => String(column(i)).toLowerCase().includes(lower);
    case "=": return (i) => equal(column(i), lower, number);
    case "!=": return (i) => !equal(column(i), lower, number);
  }
  if (Number.isNaN(number)) throw new QueryError(`${value} is not a number`);
  switch (sign) {
    case "<": return (i) => Number(column(i)) < number;
    case "<=": return (i) => Number(column(i)) <= number;
    case ">": return (i) => Number(column(i)) > number;
    default: return (i) => Number(column(i)) >= number;
  }
}

function equal(v: number | string, lower: string, number: number): boolean {
  return typeof v === "number" ? v === number : v.toLowerCase() === lower;
}
