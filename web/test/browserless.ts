// What modules touch when they are loaded, for tests that have no browser.
Object.assign(globalThis, {
  document: {
    baseURI: "http://vernier.test/base/", documentElement: { dataset: {} }, hidden: false,
    addEventListener() {}, querySelector: () => null,
    createElement: () => ({ getContext: () => ({ font: "", measureText: (s: string) => ({ width: s.length * 6 }) }) }),
  },
  location: new URL("http://vernier.test/base/ns/a/experiments/b?q=loss%3C1"),
  history: { replaceState(_: unknown, __: string, url: string) { Object.assign(location, { href: new URL(url, location.href).href }); }, pushState() {} },
  addEventListener() {},
  matchMedia: () => ({ matches: false, addEventListener() {} }),
  getComputedStyle: () => ({ getPropertyValue: () => "" }),
  requestAnimationFrame: (f: () => void) => { f(); return 0; },
});
