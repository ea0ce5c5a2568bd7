// Small parts that all pages are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, useGateway } from "../lib/api";
import { duration } from "../lib/format";

type Children = ComponentChildren;

export type Tone = "good" | "warn" | "bad" | "idle";

/** A state: a coloured mark and a word, so that it can be read without the colour. */
export function State({ tone, children }: { tone: Tone; children: Children }) {
  return <span class={`state ${tone}`}><i aria-hidden="true" />{children}</span>;
}

export function toneOf(state: string): Tone {
  const word = state.toLowerCase();
  if (/^(up|healthy|in sync|done|running|map|reduce|put|primary|member|on|advise)$/.test(word)) return "good";
  if (/^(down|unavailable|lost|failed|damaged|too few replicas)/.test(word)) return "bad";
  if (/^(cancelled|off|queued|waiting|ended)$/.test(word)) return "idle";
  return "warn";
}

export function Panel({ title, aside, children, id }: { title?: Children; aside?: Children; children: Children; id?: string }) {
  return (
    <section class="panel" id={id}>
      {(title || aside) && <header><h2>{title}</h2>{aside && <div class="aside">{aside}</div>}</header>}
      {children}
    </section>
  );
}

/** A name with dots and underscores, which may break behind them. */
export function Name({ of }: { of: string }) {
  return <>{of.split(/(?<=[._])/).map((part, at) => <>{at > 0 && <wbr />}{part}</>)}</>;
}

/** Says that something is awaited, for how long when that is no longer short, and why if that is known. */
export function Loading({ what = "Loading", onCancel }: { what?: string; onCancel?: () => void }) {
  const [seconds, setSeconds] = useState(0);
  const { lostSince } = useGateway();
  useEffect(() => {
    const began = performance.now();
    const timer = setInterval(() => setSeconds((performance.now() - began) / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  const why = lostSince !== null ? ", the gateway does not answer" : "";
  return (
    <p class="quiet row" role="status">
      {what}…{seconds >= 2 && ` ${duration(seconds)}`}{why}
      {onCancel && <button type="button" onClick={onCancel}>Cancel</button>}
    </p>
  );
}

export function Empty({ children }: { children: Children }) {
  return <p class="quiet">{children}</p>;
}

/** An error, where it happened: what failed, and what the gateway says of it. */
export function Problem({ error, doing }: { error: unknown; doing?: string }) {
  if (!error) return null;
  const failure = error instanceof ApiError ? error.failure : { message: String((error as Error).message ?? error) };
  const details = [failure.code, failure.node && `node ${failure.node}`, failure.setting && `setting ${failure.setting}`,
    failure.limit && `limit ${failure.limit}`].filter(Boolean).join(", ");
  return (
    <div class="problem" role="alert">
      {doing && <strong>{doing}: </strong>}{failure.message}{details && <span class="quiet"> ({details})</span>}
    </div>
  );
}

export function Messages({ of, kind }: { of: string[]; kind: "problem" | "warning" | "note" }) {
  if (of.length === 0) return null;
  return <ul class={`messages ${kind}`}>{of.map((text) => <li key={text}>{text}</li>)}</ul>;
}

/** A share of a whole. `mark`: a limit, as a share. */
export function Bar({ share, mark, tone = "idle", label }: { share: number; mark?: number; tone?: Tone; label: string }) {
  const clamp = (value: number) => `${Math.min(100, Math.max(0, value * 100))}%`;
  return (
    <span class={`bar ${tone}`} role="img" aria-label={label} title={label}>
      <i style={{ width: clamp(share) }} />
      {mark !== undefined && <b style={{ left: clamp(mark) }} />}
    </span>
  );
}

/** Parts of a whole, side by side, with their legend. */
export function Parts({ parts, total }: { parts: { name: string; value: number; tone: Tone }[]; total: number }) {
  const shown = parts.filter((part) => part.value > 0);
  return (
    <div>
      <div class="parts" role="img" aria-label={shown.map((part) => `${part.value} ${part.name}`).join(", ")}>
        {shown.map((part) => <i key={part.name} class={part.tone} style={{ flexGrow: part.value / Math.max(1, total) }} />)}
      </div>
      <ul class="legend">
        {parts.map((part) => (
          <li key={part.name} class={part.value > 0 ? "" : "quiet"}>
            <State tone={part.value > 0 ? part.tone : "idle"}>{part.name}</State> <b>{part.value.toLocaleString("en")}</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A figure in large type with its name. */
export function Figure({ name, value, note, children }: { name: string; value: Children; note?: Children; children?: Children }) {
  return (
    <div class="figure">
      <span class="name">{name}</span>
      <span class="value">{value}</span>
      {note && <span class="note">{note}</span>}
      {children}
    </div>
  );
}

/** A dialog above the page; Escape closes it.
 *
 * It is opened in the same step that draws it, so that no key goes to the page behind it. A browser sends `cancel` before Escape closes
 * the dialog only if the user has done something since the last dialog; otherwise it closes the dialog at once and sends `close`. */
export function Dialog({ title, onClose, children, isWide }: {
  title: string;
  onClose: () => void;
  children: Children;
  isWide?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    // While the dialog is there, what is behind it cannot have the focus.
    return () => queueMicrotask(() => before?.focus?.());
  }, []);
  return (
    <dialog ref={dialog} class={isWide ? "wide" : ""} aria-label={title} onCancel={(event) => {
      event.preventDefault();
      onClose();
    }} onClose={onClose}>
      <header><h2>{title}</h2><button type="button" class="plain" aria-label="Close" onClick={onClose}>✕</button></header>
      {children}
    </dialog>
  );
}

export function Input({ label, value, onInput, placeholder, hint, type = "text", list, isRequired, autoFocus, isWide }: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  placeholder?: string;
  hint?: Children;
  type?: "text" | "number";
  list?: string[];
  isRequired?: boolean;
  autoFocus?: boolean;
  isWide?: boolean;
}) {
  const listId = list && `list-${label.replace(/\W+/g, "-")}`;
  return (
    <label class={isWide ? "field wide" : "field"}>
      <span>{label}</span>
      <input type={type} value={value} placeholder={placeholder} list={listId} required={isRequired} autoFocus={autoFocus}
        autocomplete="off" spellcheck={false} onInput={(event) => onInput(event.currentTarget.value)} />
      {list && <datalist id={listId}>{list.map((one) => <option key={one} value={one} />)}</datalist>}
      {hint && <small>{hint}</small>}
    </label>
  );
}

export function TextArea({ label, value, onInput, rows, placeholder, hint, isRequired }: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  rows: number;
  placeholder?: string;
  hint?: Children;
  isRequired?: boolean;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <textarea value={value} rows={rows} placeholder={placeholder} required={isRequired} spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)} />
      {hint && <small>{hint}</small>}
    </label>
  );
}

export function Select({ label, value, options, onChange }: {
  label: string;
  value: string;
  options: (string | [string, string])[];
  onChange: (value: string) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => {
          const [key, name] = typeof option === "string" ? [option, option] : option;
          return <option key={key} value={key}>{name}</option>;
        })}
      </select>
    </label>
  );
}

/** A text to copy: a command line, or JSON. */
export function Code({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without TLS there is no clipboard away from this machine: select the text instead.
      const range = document.createRange();
      range.selectNodeContents(code.current!);
      getSelection()?.removeAllRanges();
      getSelection()?.addRange(range);
      return;
    }
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  const code = useRef<HTMLElement>(null);
  return (
    <div class="code">
      <span class="quiet">{label}</span>
      <pre tabIndex={0} aria-label={label}><code ref={code}>{text}</code></pre>
      <button type="button" class="plain" onClick={copy}>{isCopied ? "Copied" : "Copy"}</button>
    </div>
  );
}

/** Runs a call of a button: says that it runs, and its error. */
export function useAction(): { isBusy: boolean; error: unknown; run: (call: () => Promise<void>) => Promise<void>; clear: () => void } {
  const [state, setState] = useState<{ isBusy: boolean; error: unknown }>({ isBusy: false, error: undefined });
  // The number of the latest call: the end of an earlier one, or of one whose page is gone, says nothing.
  const latest = useRef(0);
  useEffect(() => () => { latest.current = -1; }, []);
  const run = async (call: () => Promise<void>) => {
    if (latest.current < 0) return;
    const mine = ++latest.current;
    setState({ isBusy: true, error: undefined });
    try {
      await call();
      if (latest.current === mine) setState({ isBusy: false, error: undefined });
    } catch (error) {
      if (latest.current === mine) setState({ isBusy: false, error });
    }
  };
  return { ...state, run, clear: () => setState({ isBusy: false, error: undefined }) };
}

export function Tabs({ of, current, onChange }: { of: string[]; current: string; onChange: (tab: string) => void }) {
  return (
    <div class="tabs">
      {of.map((tab) => (
        <button key={tab} type="button" aria-pressed={tab === current} onClick={() => onChange(tab)}>{tab}</button>
      ))}
    </div>
  );
}
