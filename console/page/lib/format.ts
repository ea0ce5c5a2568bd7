// Numbers, sizes and times as text.

import { isNumber, numberText, writeJson } from "./json";

const kNumber = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number | null | undefined): string {
  return value == null ? "–" : kNumber.format(value);
}

/** Returns a number with three digits that matter. */
export function short(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return kNumber.format(value);
  return String(Number(value.toPrecision(size >= 10 ? 3 : 2)));
}

export function rate(value: number | null | undefined): string {
  return value == null ? "–" : `${short(value)}/s`;
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  let size = Math.abs(Number(value));
  while (size >= 1000 && at < units.length - 1) {
    size /= 1024;
    ++at;
  }
  const digits = at === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)} ${units[at]}`;
}

export function percent(fraction: number | null | undefined): string {
  if (fraction == null || !Number.isFinite(fraction)) return "–";
  const value = fraction * 100;
  return `${value > 0 && value < 10 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** Returns a short time with its unit: a latency. */
export function latency(seconds: number | null | undefined): string {
  if (seconds == null) return "–";
  if (seconds >= 1) return `${short(seconds)} s`;
  if (seconds >= 0.001) return `${short(seconds * 1000)} ms`;
  return `${short(seconds * 1e6)} µs`;
}

/** Returns a time that a person waits for, with its two largest units. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  if (seconds < 10) return `${seconds < 0.05 ? 0 : seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const steps: [number, string][] = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  let first = steps.findIndex(([size]) => Math.max(60, seconds) >= size);
  // Rounding to the second unit may fill up the first one, as in 1 h 59.9 min.
  const rounded = Math.round(seconds / steps[first + 1]![0]) * steps[first + 1]![0];
  if (first > 0 && rounded >= steps[first - 1]![0]) --first;
  const [size, unit] = steps[first]!;
  const next = steps[first + 1]!;
  const whole = Math.floor(rounded / size);
  const rest = Math.floor((rounded - whole * size) / next[0]);
  if (rest === 0 || whole >= 100) return `${kNumber.format(whole)} ${unit}`;
  return `${whole} ${unit} ${rest} ${next[1]}`;
}

const kTime = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium" });

/** Returns date and time of this browser's time zone; a dash for 0. */
export function time(unixUs: number): string {
  return unixUs === 0 ? "–" : kTime.format(new Date(unixUs / 1000));
}

export function ago(unixUs: number, now: number): string {
  return unixUs === 0 ? "–" : `${duration(Math.max(0, now / 1000 - unixUs / 1e6))} ago`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Returns a value of a document or a result as text. */
export function text(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (isNumber(value)) return numberText(value);
  return typeof value === "string" ? value : writeJson(value);
}

/** Quotes a word for a POSIX shell, if it needs that. */
export function shell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function command(...words: (string | false | undefined)[]): string {
  return words.filter((word): word is string => typeof word === "string").map(shell).join(" ");
}

/** Splits at commas that stand outside of parentheses and quotes. */
export function listOf(line: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let quote = "";
  let part = "";
  for (const c of line) {
    if (quote) quote = c === quote ? "" : quote;
    else if (c === '"' || c === "'") quote = c;
    else if (c === "(") ++depth;
    else if (c === ")") --depth;
    if (c === "," && depth === 0 && !quote) {
      parts.push(part);
      part = "";
    } else {
      part += c;
    }
  }
  parts.push(part);
  return parts.map((one) => one.trim()).filter(Boolean);
}
