// An experiment in one file, without a server: the dashboard's pages over a Snapshot.
import { useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { nameOf, pathOf, placeOf, seconds } from "../data/experiment";
import { clock } from "../data/trials";
import { ExperimentPages } from "../pages/experiment";
import { refreshTheme, setTheme, theme } from "../plot/theme";
import { go, href, path } from "../router";
import { Keys, ThemeMenu } from "../ui/menus";
import { Empty, Toasts } from "../ui/ui";
import { snapshot, unpack } from "./snapshot";

function App() {
  theme.value;
  const s = snapshot(), p = placeOf(s.experiment!.name), help = useSignal(false);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if ((e.target as Element).closest("input,textarea,select,dialog") || e.metaKey || e.ctrlKey || e.altKey) return;
      if (e.key === "?") help.value = true;
      else if (e.key === ".") setTheme(theme.peek().dark ? "light" : "dark");
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const [, , , , , part, trial] = path.value.split("/");
  const when = new Date(seconds(s.time) * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
  return (
    <>
      <header class="top">
        <a class="brand" href={href(pathOf(p))}>Vernier</a>
        <div class="crumbs" role="navigation" aria-label="Where this is">
          <span>{p.namespace}</span><span aria-hidden="true">/</span>
          <a href={href(pathOf(p))} aria-current={part ? undefined : "page"}>{p.experiment}</a>
          {trial && <><span aria-hidden="true">/</span><span aria-current="page">{trial}</span></>}
          {part === "compare" && <><span aria-hidden="true">/</span><span aria-current="page">compare</span></>}
        </div>
        <div class="spacer" />
        <span class="signal" title={`Made by Vernier ${s.version}. Curves are reduced to a few hundred points.`}>As it was on {when}</span>
        <Keys open={help} without={["g e", "g t", "g c", "p"]} />
        <ThemeMenu />
      </header>
      <main id="main" tabIndex={-1}>
        {path.value.startsWith(pathOf(p)) ? <ExperimentPages namespace={p.namespace} experiment={p.experiment} part={part ?? ""} trial={trial ?? ""} />
          : <Empty title="This file has no such page"><a class="link" href={href(pathOf(p))}>To {nameOf(p)}</a></Empty>}
      </main>
      <Toasts />
    </>
  );
}

const at = document.getElementById("app")!;
unpack().then(
  (s) => {
    const taken = seconds(s.time) * 1000;
    clock.now = () => taken;
    refreshTheme();
    if (location.hash.length < 2) go(pathOf(placeOf(s.experiment!.name)) + s.view, true);
    render(<App />, at);
  },
  (err: unknown) => { at.textContent = `This file cannot be read: ${String(err)}. Browsers of 2023 and later can.`; },
);
