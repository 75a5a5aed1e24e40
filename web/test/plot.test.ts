import { describe, expect, it } from "vitest";
import { beyond, extent, linearTicks, logTicks, padded, robust, scale } from "../src/plot/scale";
import { SvgSurface } from "../src/plot/surface";

describe("scales", () => {
  it("invert what they map", () => {
    for (const s of [scale([2, 10]), scale([1e-5, 0.1], { log: true })]) for (const v of [s.domain[0], (s.domain[0] + s.domain[1]) / 3, s.domain[1]]) expect(s.invert(s.at(v))).toBeCloseTo(v, 9);
  });
  it("have a width where all values are one", () => expect(scale([3, 3]).at(3)).toBeCloseTo(0.5, 6));
  it("are linear where a logarithm is not defined", () => expect(scale([0, 1], { log: true }).log).toBe(false));
  it("have few round ticks", () => {
    expect(linearTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(linearTicks(-0.3, 17, 4)).toEqual([0, 5, 10, 15]);
    expect(logTicks(1e-5, 0.1, 5)).toEqual([1e-5, 1e-4, 1e-3, 0.01, 0.1]);
    for (const [a, b] of [[0.62, 0.63], [1e-9, 2e-9], [-5e6, 7e6]]) expect(linearTicks(a, b, 6).length).toBeGreaterThan(2);
  });
  const close: [number, number][] = [
    [0.3, 0.1 + 0.2], padded([0.3, 0.1 + 0.2]), [1 - 2 ** -53, 1], [1e18, 1e18 + 128], [-1e18 - 128, -1e18], [2 ** 60, 2 ** 60 + 512], [0, 5e-324], [-5e-324, 5e-324], [-1.7e308, 1.7e308],
  ];
  for (const [a, b] of close) {
    it(`have few ticks from ${a} to ${b}, whose numbers lie as close as numbers can, or as far`, () => {
      for (const s of [scale([a, b]), scale([a, b], { log: true }), scale([a, b], { time: true })]) {
        const ticks = s.ticks(5);
        expect(ticks.length).toBeLessThan(20);
        expect(ticks).toEqual([...new Set(ticks)]);
      }
    });
  }
  it("tell each tick of a time from the next", () => {
    for (const [a, b] of [[3605, 3655], [7210, 7235], [90_100, 93_500], [10.2, 10.8], [0.0001, 0.0004], [5, 5.05], [0, 0.004], [0, 7], [5, 5.3], [9, 13], [0, 95], [3600, 3700], [0, 5400], [90_000, 93_000], [0, 900_000]]) {
      const s = scale([a, b], { time: true });
      for (const count of [2, 6, 12]) {
        const texts = s.ticks(count).map(s.text);
        expect(texts, `${a} to ${b}`).toEqual([...new Set(texts)]);
        expect(texts.length).toBeGreaterThan(0);
      }
    }
    expect(scale([0, 300], { time: true }).ticks(6)).toEqual([0, 60, 120, 180, 240, 300]);
  });
  it("leave diverged trials out, not the rest", () => {
    const values = Array.from({ length: 100 }, (_, i) => 0.5 + i / 1000);
    expect(robust([...values, 1e9])).toEqual([0.5, 0.599]);
    expect(robust([...values, 0.9])![1]).toBe(0.9);
    expect(robust([NaN, Infinity])).toBeNull();
    expect(robust([0.1, 0.1, 0.1, 0.9], "high")).toEqual([0.1, 0.9]); // the first trial that learns
    expect(robust([0.1, 0.1, 0.1, 0.9])).toEqual([0.1, 0.1]);
    for (const n of [3, 7, 9, 10, 20]) expect(robust([...values.slice(0, n), 1e6])![1]).toBe(values[n - 1]); // a first value of a short curve
    for (const few of [[0.1, 0.69, 0.69, 0.69, 0.69], [1, 2, 2.1, 8], [1e6, 2]]) expect(robust(few)).toEqual(extent(few));
    expect([beyond([1, 2, 3, NaN], [1, 2]), beyond([1, 2], [1, 2])]).toEqual(["1 beyond the scale", null]);
    expect(extent([NaN, 3, -Infinity, 1])).toEqual([1, 3]);
    expect(padded([1, 1])[0]).toBeLessThan(1);
  });
});

describe("SVG", () => {
  it("escapes what is drawn, and closes what it opens", () => {
    const g = new SvgSurface({ width: 10, height: 10 }, "#fff");
    g.save();
    g.beginPath();
    g.rect(0, 0, 5, 5);
    g.clip();
    g.translate(1, 2);
    g.fillText('<script>"&', 1, 2);
    g.restore();
    g.fillRect(0, 0, 1, 1);
    const text = g.text();
    expect(text).toContain("&lt;script&gt;&quot;&amp;");
    expect(text.match(/<g /g)!.length).toBe(text.match(/<\/g>/g)!.length);
    expect(text.indexOf("</g></g>")).toBeLessThan(text.lastIndexOf("<path"));
  });
});
