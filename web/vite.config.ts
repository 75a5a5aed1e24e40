import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// File names are stable, so that a rebuild changes as little as the sources did:
// the server sends ETags. Addresses are relative to <base>, which it writes.
// With --mode shared: the program of shared files, in one piece, over its own data
// and addresses; it has the style sheet of the dashboard.
export default defineConfig(({ mode }) => {
  const jsx = { runtime: "automatic", importSource: "preact" } as const, source = (path: string) => fileURLToPath(new URL("src/" + path, import.meta.url));
  if (mode === "shared") {
    return {
      oxc: { jsx },
      publicDir: false,
      resolve: {
        alias: [
          { find: /^(\.\.?\/)+api\/(client|live)$/, replacement: source("shared/$2.ts") },
          { find: /^(\.\.?\/)+router$/, replacement: source("shared/router.ts") },
        ],
      },
      build: {
        target: "es2022",
        emptyOutDir: false,
        modulePreload: false,
        chunkSizeWarningLimit: 600,
        rolldownOptions: { input: source("shared/main.tsx"), output: { format: "es", codeSplitting: false, entryFileNames: "assets/shared.js" } },
      },
    };
  }
  return {
    base: "./",
    oxc: { jsx },
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
  };
});
