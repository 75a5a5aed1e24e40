// The parts of which the pages are made.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { explain } from "../api/client";
import { STATES } from "../data/trials";

const icons: Record<string, string> = {
  chart: "M4 19V5M4 19h16M8 15l4-5 3 3 5-7",
  table: "M4 6h16M4 12h16M4 18h16M10 6v12",
  download: "M12 4v11m-4-4 4 4 4-4M5 19h14",
  search: "M11 18a7 7 0 1 1 0-14 7 7 0 0 1 0 14zm5-2 4 4",
  close: "M6 6l12 12M18 6 6 18",
  pause: "M9 6v12M15 6v12",
  play: "M8 5.5v13l10.5-6.5z",
  stop: "M7 7h10v10H7z",
  plus: "M12 5v14M5 12h14",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  moon: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M5.6 18.4l1.1-1.1M17.3 6.7l1.1-1.1",
  auto: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  columns: "M5 5h14v14H5zM10 5v14M15 5v14",
  copy: "M9 9h10v10H9zM5 15V5h10",
  clone: "M8 8h11v11H8zM5 16V5h11M13.5 11v5M11 13.5h5",
  share: "M12 15V4m-4 4 4-4 4 4M6 12H5v8h14v-8h-1",
  rerun: "M19 12a7 7 0 1 1-2.1-5M19 4v4h-4",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12",
  gear: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  check: "M5 12.5l4.5 4.5L19 7.5",
  chevron: "M8 10l4 4 4-4",
  left: "M14 7l-5 5 5 5",
  info: "M12 11v5M12 8h.01M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16z",
  bell: "M6 16h12l-1.5-2.5V10a4.5 4.5 0 0 0-9 0v3.5zM10 19a2 2 0 0 0 4 0",
  warn: "M12 4 3 19h18zM12 10v4M12 16.5h.01",
  compare: "M8 5v14M16 5v14M4 8h8M12 16h8",
  out: "M14 5h5v14h-5M4 12h10m-3.5-3.5L14 12l-3.5 3.5",
};

export function Icon({ name, size = 16 }: { name: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width={name === "more" ? 3 : 1.75}
      stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={icons[name]} />
    </svg>
  );
}

// Each state has a shape besides its colour.
const shapes: Record<string, string> = {
  pending: "M8 3.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6z",
  running: "M8 3.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6zM8 3.2a4.8 4.8 0 0 1 0 9.6z",
  stopping: "M4.5 4.5h7v7h-7z",
  succeeded: "M3.5 8.5l3 3 6-6.5",
  pruned: "M4 5.5h8M5.5 8.5h5M7 11.5h2",
  failed: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  infeasible: "M8 3.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6zM4.6 11.4l6.8-6.8",
  unmeasured: "M6 6.2a2 2 0 1 1 2.6 2c-.5.2-.6.6-.6 1.2M8 11.6h.01",
  cancelled: "M4 8h8",
  interrupted: "M4.5 4.5h7v7h-7z",
  paused: "M6.2 4.5v7M9.8 4.5v7",
  unknown: "M8 8h.01",
};

export function StateMark({ state, text = true }: { state: string | number; text?: boolean }) {
  const name = typeof state === "number" ? STATES[state] : state;
  return (
    <span class={`state state-${name}`}>
      <svg width="14" height="14" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
        <path d={shapes[name] ?? shapes.unknown} fill={name === "running" ? "currentColor" : "none"} fill-opacity={name === "running" ? 0.35 : undefined} />
      </svg>
      {text ? name : <span class="sr">{name}</span>}
    </span>
  );
}

export interface MenuItem {
  text: string;
  act: () => void;
  icon?: string;
  danger?: boolean;
  checked?: boolean;
}

/** A button with a menu under it. */
export function Menu({ label, icon, text, items, keep }: { label: string; icon?: string; text?: string; items: MenuItem[]; keep?: boolean }) {
  const open = useSignal(false), box = useRef<HTMLDivElement>(null), id = useId();
  const button = () => box.current?.querySelector<HTMLElement>("button");
  const entries = () => [...(box.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
  useEffect(() => {
    if (!open.value) return;
    entries()[0]?.focus();
    const away = (e: Event) => !box.current?.contains(e.target as Node) && (open.value = false);
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open.value]);
  const key = (e: KeyboardEvent) => {
    const all = entries(), at = all.indexOf(document.activeElement as HTMLElement);
    if (e.key === "Escape" && open.value) {
      open.value = false;
      button()?.focus();
    } else if (e.key === "ArrowDown") all[(at + 1) % all.length]?.focus();
    else if (e.key === "ArrowUp") all[(at - 1 + all.length) % all.length]?.focus();
    else if (e.key === "Tab") open.value = false;
    if (["Escape", "ArrowDown", "ArrowUp"].includes(e.key) && open.value) e.preventDefault();
    if (e.key === "Escape") e.stopPropagation();
  };
  return (
    <div class="menu" ref={box} onKeyDown={key}>
      <button type="button" class={text ? "button" : "icon-button"} aria-haspopup="menu" aria-expanded={open.value} aria-controls={id}
        aria-label={text ? undefined : label} title={text ? undefined : label} onClick={() => (open.value = !open.value)}>
        {icon && <Icon name={icon} />}
        {text}
        {text && <Icon name="chevron" size={14} />}
      </button>
      {open.value && (
        <div class="menu-list" role="menu" id={id} aria-label={label}>
          {items.map((i) => (
            <button type="button" key={i.text} role={i.checked === undefined ? "menuitem" : "menuitemcheckbox"} aria-checked={i.checked}
              class={i.danger ? "danger" : ""} tabIndex={-1}
              onClick={() => { if (!keep) { open.value = false; button()?.focus(); } i.act(); }}>
              {i.checked !== undefined && <span class="tick">{i.checked && <Icon name="check" size={14} />}</span>}
              {i.icon && <Icon name={i.icon} />}
              {i.text}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

export function Dialog({ title, open, close, children }: { title: string; open: boolean; close: () => void; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null), id = useId();
  useEffect(() => {
    if (open && !box.current!.open) box.current!.showModal();
    if (!open && box.current!.open) box.current!.close();
  }, [open]);
  return (
    <dialog ref={box} aria-labelledby={id} onClose={close} onClick={(e) => e.target === box.current && close()}>
      {open && (
        <div class="dialog">
          <header><h2 id={id}>{title}</h2>
            <button type="button" class="icon-button" aria-label="Close" onClick={close}><Icon name="close" /></button></header>
          {children}
        </div>
      )}
    </dialog>
  );
}

export function Segments<T extends string>({ label, value, options, set }: { label: string; value: T; options: [T, string][]; set: (v: T) => void }) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([v, text]) => <button type="button" key={v} aria-pressed={v === value} onClick={() => set(v)}>{text}</button>)}
    </div>
  );
}

export function Select({ label, value, options, set }: { label: string; value: string; options: string[]; set: (v: string) => void }) {
  return (
    <label class="select"><span class="sr">{label}</span>
      <select value={value} onChange={(e) => set(e.currentTarget.value)}>{options.map((o) => <option key={o} value={o}>{o}</option>)}</select>
    </label>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><h2>{title}</h2>{children}</div>;
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const e = explain(error);
  return (
    <div class="empty" role="alert">
      <Icon name="warn" size={22} />
      <h2>{e.text}</h2>
      {e.remedy && <p>{e.remedy}</p>}
      {retry && <button type="button" class="button" onClick={retry}>Try again</button>}
    </div>
  );
}

export const Skeleton = ({ rows = 6 }: { rows?: number }) => (
  <div class="skeleton" aria-hidden="true">{Array.from({ length: rows }, (_, i) => <span key={i} style={{ width: `${92 - ((i * 37) % 40)}%` }} />)}</div>
);

export interface Toast {
  text: string;
  bad?: boolean;
}
let show: (t: Toast) => void = () => {};
/** Says what came of an action. */
export const say = (text: string, bad = false) => show({ text, bad });
export const complain = (err: unknown) => {
  const e = explain(err);
  say(`${e.text}${e.remedy ? ` (${e.remedy})` : ""}`, true);
};

export function Toasts() {
  const now = useSignal<Toast | null>(null);
  useEffect(() => {
    let timer = 0;
    show = (t) => {
      now.value = t;
      clearTimeout(timer);
      timer = setTimeout(() => (now.value = null), t.bad ? 10_000 : 4_000) as unknown as number;
    };
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {now.value && (
        <div class={`toast${now.value.bad ? " bad" : ""}`}>
          <Icon name={now.value.bad ? "warn" : "check"} />{now.value.text}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => (now.value = null)}><Icon name="close" size={14} /></button>
        </div>
      )}
    </div>
  );
}
