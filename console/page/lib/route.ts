// The page and its parameters, in the part of the address behind #, so that the address can be kept and sent.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  page: string;
  parameters: URLSearchParams;
}

function current(): Route {
  const [page = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { page: page || "overview", parameters: new URLSearchParams(search) };
}

/** Returns the parameters as a record, as href() takes them. */
export function recordOf(parameters: URLSearchParams): Record<string, string> {
  return Object.fromEntries(parameters);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const change = () => setRoute(current());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

export function href(page: string, parameters: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) search.set(name, value);
  const text = search.toString();
  return `#/${page}${text ? `?${text}` : ""}`;
}

/** Notes what a page shows in the address, without a step for the button "back". */
export function note(page: string, parameters: Record<string, string | undefined> = {}) {
  if (location.hash === href(page, parameters)) return;
  history.replaceState(null, "", href(page, parameters));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function go(page: string, parameters: Record<string, string | undefined> = {}) {
  location.hash = href(page, parameters);
}
