// The shell: the bar on top, the page below it, the keys that work everywhere.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { online } from "./api/client";
import { mode } from "./api/live";
import { locked, signOut } from "./api/session";
import { Bell } from "./ui/bell";
import { lazy } from "./lazy";
import { Experiments } from "./pages/experiments";
import { ExperimentPages } from "./pages/experiment";
import { Login } from "./pages/login";
import { setTheme, theme } from "./plot/theme";
import { go, href, path, search } from "./router";
import { Keys, ThemeMenu } from "./ui/menus";
import { Empty, Icon, say, Toasts } from "./ui/ui";

const New = lazy(() => import("./pages/new").then((m) => m.New));
const Cluster = lazy(() => import("./pages/cluster").then((m) => m.Cluster));

export function App() {
  theme.value;
  const help = useSignal(false);
  useEffect(() => {
    let before = "";
    const key = (e: KeyboardEvent) => {
      if ((e.target as Element).closest("input,textarea,select,.cm-editor,dialog") || e.metaKey || e.ctrlKey || e.altKey) return;
      if (before === "g" && e.key === "e") go("/");
      else if (before === "g" && e.key === "c") go("/cluster");
      else if (before === "g" && e.key === "t" && /^\/ns\/[^/]+\/experiments\/[^/]+/.test(path.peek())) go(path.peek().split("/").slice(0, 5).join("/") + "/trials" + search());
      else if (e.key === "?") help.value = true;
      else if (e.key === ".") setTheme(theme.peek().dark ? "light" : "dark");
      before = e.key;
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  if (locked.value !== null) return <Login why={locked.value} />;
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.querySelector<HTMLElement>("main")?.focus(); }}>Skip to the content</a>
      <Top help={help} />
      <main id="main" tabIndex={-1}><Page /></main>
      <Toasts />
    </>
  );
}

function Top({ help }: { help: Signal<boolean> }) {
  const [, ns, namespace, kind, experiment, part, trial] = path.value.split("/");
  const inside = ns === "ns" && kind === "experiments" && experiment;
  const says = !online.value || mode.value === "lost" ? "lost" : mode.value;
  return (
    <header class="top">
      <a class="brand" href={href("/")} aria-label="Vernier: experiments"><img src="icon.svg" width="22" height="22" alt="" />{!inside && "Vernier"}</a>
      {inside ? (
        <div class="crumbs" role="navigation" aria-label="Where this is">
          <a href={href(`/ns/${namespace}`)}>{namespace}</a><span aria-hidden="true">/</span>
          <a href={href(`/ns/${namespace}/experiments/${experiment}`)} aria-current={part ? undefined : "page"}>{experiment}</a>
          {trial && <><span aria-hidden="true">/</span><span aria-current="page">{trial}</span></>}
          {part === "compare" && <><span aria-hidden="true">/</span><span aria-current="page">compare</span></>}
        </div>
      ) : (
        <nav aria-label="Pages">
          <a href={href("/")} aria-current={path.value === "/" || ns === "ns" ? "page" : undefined}>Experiments</a>
          <a href={href("/cluster")} aria-current={path.value === "/cluster" ? "page" : undefined}>Cluster</a>
        </nav>
      )}
      <div class="spacer" />
      <span class={`signal ${says}`} role="status">{says !== "idle" && <><i />{{ live: "Live", polling: "Every 5 s", asleep: "Asleep", lost: "Connecting" }[says]}</>}</span>
      <Bell />
      <Keys open={help} />
      <ThemeMenu />
      <button type="button" class="icon-button" aria-label="Sign out" title="Sign out"
        onClick={async () => (await signOut().catch(() => false)) || say("The proxy in front of this dashboard signs people in and out.")}><Icon name="out" /></button>
    </header>
  );
}

function Page() {
  const [, first, namespace, kind, experiment, part, trial] = path.value.split("/");
  if (!first) return <Experiments />;
  if (first === "ns" && namespace && !kind) return <Experiments namespace={namespace} />;
  if (first === "ns" && kind === "experiments" && experiment) {
    return <ExperimentPages key={`${namespace}/${experiment}`} namespace={namespace} experiment={experiment} part={part ?? ""} trial={trial ?? ""} />;
  }
  if (first === "new") return <New />;
  if (first === "cluster") return <Cluster />;
  return <Empty title="There is no such page"><a class="link" href={href("/")}>To the experiments</a></Empty>;
}
