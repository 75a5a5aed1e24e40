// What stands at the end of the bar on top.
import type { Signal } from "@preact/signals";
import { choice, setTheme } from "../plot/theme";
import { Dialog, Menu } from "./ui";

const keys = [["/", "filter"], ["Esc", "clear the filter"], ["j k", "next and previous row"], ["x", "select"], ["c", "compare what is selected"], ["g e", "experiments"],
  ["g t", "trials of this experiment"], ["g c", "cluster"], ["p", "pause or resume"], [".", "light or dark"], ["?", "this"]];

/** The button that explains the keys, but not some of them. */
export function Keys({ open, without = [] }: { open: Signal<boolean>; without?: string[] }) {
  return (
    <>
      <button type="button" class="icon-button" aria-label="Keys" title="Keys ( ? )" onClick={() => (open.value = true)}><b aria-hidden="true">?</b></button>
      <Dialog title="Keys" open={open.value} close={() => (open.value = false)}>
        <dl class="keys">
          {keys.filter(([k]) => !without.includes(k)).map(([k, what]) => <><dt key={k}>{k.split(" ").map((w) => <><kbd>{w}</kbd> </>)}</dt><dd>{what}</dd></>)}
        </dl>
      </Dialog>
    </>
  );
}

export function ThemeMenu() {
  return (
    <Menu label="Theme" icon={{ light: "sun", dark: "moon", system: "auto" }[choice.value]} items={[
      { text: "As the system", icon: "auto", act: () => setTheme("system") },
      { text: "Light", icon: "sun", act: () => setTheme("light") },
      { text: "Dark", icon: "moon", act: () => setTheme("dark") },
    ]} />
  );
}
