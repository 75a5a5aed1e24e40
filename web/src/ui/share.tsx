// Saves what is looked at as one HTML file that needs no server.
import { useSignal } from "@preact/signals";
import { dashboard, shared } from "../api/client";
import { nameOf, pathOf, type Model } from "../data/experiment";
import type { View } from "../data/view";
import { download } from "../plot/plot";
import { path, search } from "../router";
import { complain, Icon, say } from "./ui";

export function Share({ model, view }: { model: Model; view: View }) {
  const busy = useSignal(false);
  if (shared) return null;
  const save = async () => {
    busy.value = true;
    try {
      const part = path.peek().slice(pathOf(model.place).length);
      const answer = await dashboard.shareExperiment({ parent: nameOf(model.place), trials: [...view.selected.peek()], view: part + search() });
      download(`${model.place.experiment}.html`, new Blob([answer.page as BlobPart], { type: "text/html" }));
      say(`Saved ${model.place.experiment}.html (${(answer.page.length / 1e6).toFixed(1)} MB). It needs no server; the trial template is not in it.`);
    } catch (err) {
      complain(err);
    } finally {
      busy.value = false;
    }
  };
  return <button type="button" class="button" disabled={busy.value} title="Save this page as one HTML file that needs no server" onClick={save}><Icon name="share" />{busy.value ? "Saving…" : "Share"}</button>;
}
