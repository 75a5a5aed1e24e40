// The editor for YAML, loaded when it is opened.
export interface Editor {
  destroy: () => void;
}

export async function editor(parent: HTMLElement, text: string, change: (t: string) => void): Promise<Editor> {
  const { make } = await import("./codemirror");
  return make(parent, text, change);
}
