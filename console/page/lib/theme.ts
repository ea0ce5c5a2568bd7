// Light or dark: as the system says, or as chosen here.

export type Theme = "system" | "light" | "dark";

const kKey = "fjord-theme";
const listeners = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", tell);

function tell() {
  for (const listener of listeners) listener();
}

export function theme(): Theme {
  try {
    const stored = localStorage.getItem(kKey);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system"; // A browser may refuse storage.
  }
}

export function setTheme(wanted: Theme) {
  try {
    localStorage.setItem(kKey, wanted);
  } catch {
    // Then it holds until the page is left.
  }
  apply(wanted);
  tell();
}

export function apply(wanted: Theme) {
  document.documentElement.style.colorScheme = wanted === "system" ? "" : wanted;
}

/** Calls the listener when the colours have changed. Returns what ends that. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
