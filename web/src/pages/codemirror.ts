import { yaml } from "@codemirror/lang-yaml";
import { basicSetup, EditorView } from "codemirror";
import type { Editor } from "./editor";

export function make(parent: HTMLElement, text: string, change: (t: string) => void): Editor {
  return new EditorView({
    doc: text,
    parent,
    extensions: [
      basicSetup,
      yaml(),
      EditorView.contentAttributes.of({ "aria-label": "YAML of the experiment" }),
      EditorView.updateListener.of((u) => { if (u.docChanged) change(u.state.doc.toString()); }),
    ],
  });
}
