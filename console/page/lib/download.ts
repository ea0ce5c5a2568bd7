// Files that a page makes.

import { writeJson } from "./json";
import type { Cell } from "./types";

/** Gives a text to the user as a file. */
export function download(name: string, type: string, content: string) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/**
 * Returns rows as CSV; null is an empty cell, the empty text "". A spreadsheet runs a text that begins like a formula, so
 * `isForSheet` puts an apostrophe before it; without, texts are as they are stored.
 */
export function csvOf(answer: { columns: string[]; rows: Cell[][] }, isForSheet = false): string {
  const quote = (cell: Cell) => {
    if (cell === "") return '""';
    const text = cell === null ? "" : typeof cell === "string" ? cell : writeJson(cell);
    const value = isForSheet && typeof cell === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
  };
  return [answer.columns, ...answer.rows].map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
}
