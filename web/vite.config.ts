import { defineConfig } from "vite";

// File names are stable, so that a rebuild changes as little as the sources did:
// the server sends ETags. Addresses are relative to <base>, which it writes.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
    rolldownOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: { proxy: { "/vernier.v1": process.env.VERNIER_API ?? "http://127.0.0.1:20443" } },
});
