// What plots draw on: a canvas, or an SVG that is saved. Plots use no more of the
// canvas than this.
export type Surface = Pick<
  CanvasRenderingContext2D,
  | "beginPath" | "moveTo" | "lineTo" | "arc" | "rect" | "closePath" | "fill" | "stroke" | "fillRect" | "strokeRect" | "fillText" | "measureText"
  | "save" | "restore" | "clip" | "setLineDash" | "translate" | "rotate"
  | "fillStyle" | "strokeStyle" | "lineWidth" | "font" | "textAlign" | "textBaseline" | "globalAlpha" | "lineJoin"
>;

export interface Size {
  width: number;
  height: number;
}

const escape = (s: string) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]!);
const n = (v: number) => String(Math.round(v * 100) / 100);

/** Records what is drawn as SVG. */
export class SvgSurface {
  fillStyle: string | CanvasGradient | CanvasPattern = "#000";
  strokeStyle: string | CanvasGradient | CanvasPattern = "#000";
  lineWidth = 1;
  font = "12px sans-serif";
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  globalAlpha = 1;
  lineJoin: CanvasLineJoin = "miter";
  private dash: number[] = [];
  private d = "";
  private out: string[] = [];
  private clips = 0;
  private open = 0;
  private saved: { state: object; open: number }[] = [];
  private measure = document.createElement("canvas").getContext("2d")!;
  private size: Size;

  constructor(size: Size, background: string) {
    this.size = size;
    this.out.push(`<rect width="100%" height="100%" fill="${escape(background)}"/>`);
  }

  beginPath() { this.d = ""; }
  moveTo(x: number, y: number) { this.d += `M${n(x)} ${n(y)}`; }
  lineTo(x: number, y: number) { this.d += `${this.d ? "L" : "M"}${n(x)} ${n(y)}`; }
  closePath() { this.d += "Z"; }
  rect(x: number, y: number, w: number, h: number) { this.d += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}Z`; }
  arc(x: number, y: number, r: number) {
    this.d += `M${n(x - r)} ${n(y)}a${n(r)} ${n(r)} 0 1 0 ${n(2 * r)} 0a${n(r)} ${n(r)} 0 1 0 ${n(-2 * r)} 0`;
  }
  fill() { if (this.d) this.out.push(`<path d="${this.d}" ${this.paint("fill")}/>`); }
  stroke() { if (this.d) this.out.push(`<path d="${this.d}" ${this.paint("stroke")}/>`); }
  fillRect(x: number, y: number, w: number, h: number) {
    this.out.push(`<path d="M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}Z" ${this.paint("fill")}/>`);
  }
  strokeRect(x: number, y: number, w: number, h: number) {
    this.out.push(`<path d="M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}Z" ${this.paint("stroke")}/>`);
  }
  fillText(text: string, x: number, y: number) {
    const [, weight, size, family] = /^(?:(\d+|bold) )?([\d.]+)px (.*)$/.exec(this.font) ?? ["", "", "12", "sans-serif"];
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign as string] ?? "start";
    const shift = { middle: 0.35, top: 0.8, hanging: 0.8 }[this.textBaseline as string] ?? 0;
    this.out.push(
      `<text x="${n(x)}" y="${n(y + shift * Number(size))}" text-anchor="${anchor}" font-size="${size}"` +
        `${weight ? ` font-weight="${weight}"` : ""} font-family="${escape(family)}" ${this.paint("fill")}>${escape(text)}</text>`,
    );
  }
  measureText(text: string) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  setLineDash(d: Iterable<number>) { this.dash = [...d]; }
  translate(x: number, y: number) { this.group(`transform="translate(${n(x)} ${n(y)})"`); }
  rotate(a: number) { this.group(`transform="rotate(${n((a * 180) / Math.PI)})"`); }
  clip() {
    const id = `c${this.clips++}`;
    this.out.push(`<clipPath id="${id}"><path d="${this.d}"/></clipPath>`);
    this.group(`clip-path="url(#${id})"`);
  }
  save() {
    const { fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, dash } = this;
    this.saved.push({ state: { fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, dash }, open: this.open });
  }
  restore() {
    const s = this.saved.pop();
    if (!s) return;
    for (; this.open > s.open; this.open--) this.out.push("</g>");
    Object.assign(this, s.state);
  }

  text(): string {
    const { width, height } = this.size;
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${n(width)} ${n(height)}" width="${n(width)}" height="${n(height)}">${this.out.join("")}</svg>`;
  }

  private group(attribute: string) {
    this.out.push(`<g ${attribute}>`);
    this.open++;
  }
  private paint(what: "fill" | "stroke"): string {
    const color = escape(String(what === "fill" ? this.fillStyle : this.strokeStyle));
    const alpha = this.globalAlpha === 1 ? "" : ` opacity="${n(this.globalAlpha)}"`;
    if (what === "fill") return `fill="${color}"${alpha}`;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return `fill="none" stroke="${color}" stroke-width="${n(this.lineWidth)}" stroke-linejoin="round"${dash}${alpha}`;
  }
}
