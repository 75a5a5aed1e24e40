// Colours of plots, as the style sheet has them, and the scale of good to bad.
import { signal } from "@preact/signals";

export type Choice = "system" | "light" | "dark";
const media = matchMedia("(prefers-color-scheme: dark)");
const stored = (): Choice => {
  try {
    const v = localStorage.getItem("vernier.theme");
    return v === "light" || v === "dark" ? v : "system";
  } catch {
    return "system"; // storage is forbidden, as in some frames
  }
};

export interface Theme {
  dark: boolean;
  text: string;
  muted: string;
  grid: string;
  line: string;
  panel: string;
  accent: string;
  faint: string;
  font: string;
  /** Colour-blind-safe, for lines that are told apart. */
  series: string[];
  states: string[];
}

export const choice = signal<Choice>(stored());
export const theme = signal<Theme>(readTheme());

function readTheme(): Theme {
  const dark = choice.value === "dark" || (choice.value === "system" && media.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const css = getComputedStyle(document.documentElement);
  const v = (name: string) => css.getPropertyValue(name).trim();
  return {
    dark,
    text: v("--text"), muted: v("--muted"), grid: v("--grid"), line: v("--line"), panel: v("--panel"),
    accent: v("--accent"), faint: v("--faint"), font: v("--font"),
    series: Array.from({ length: 8 }, (_, i) => v(`--series-${i}`)),
    states: ["unknown", "pending", "running", "stopping", "succeeded", "pruned", "failed", "infeasible", "unmeasured", "cancelled"]
      .map((s) => v(`--state-${s}`)),
  };
}

export function setTheme(c: Choice) {
  choice.value = c;
  try {
    if (c === "system") localStorage.removeItem("vernier.theme");
    else localStorage.setItem("vernier.theme", c);
  } catch { /* it lasts as long as the page */ }
  theme.value = readTheme();
}
media.addEventListener("change", () => (theme.value = readTheme()));
export const refreshTheme = () => (theme.value = readTheme());

// Viridis at nine places.
const viridis = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

function mix(f: number): [number, number, number] {
  const x = Math.min(1, Math.max(0, f)) * (viridis.length - 1);
  const i = Math.min(viridis.length - 2, Math.floor(x)), t = x - i;
  return [0, 1, 2].map((k) => Math.round(viridis[i][k] + (viridis[i + 1][k] - viridis[i][k]) * t)) as [number, number, number];
}

/** The colour of how good: 0 is the best, and stands out most from the background. */
export function goodness(f: number, t: Theme, alpha = 1): string {
  f = Math.round(f * 31) / 31; // few colours: what has one is drawn at once
  const [r, g, b] = mix(t.dark ? 0.97 - f * 0.85 : 0.06 + f * 0.82);
  return alpha === 1 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${alpha})`;
}

/** A colour of the whole scale, 0 to 1. */
export function heat(f: number): string {
  const [r, g, b] = mix(f);
  return `rgb(${r},${g},${b})`;
}
