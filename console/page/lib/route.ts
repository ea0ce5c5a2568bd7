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

export function go(page: string, parameters: Record<string, string | undefined> = {}) {
  location.hash = href(page, parameters);
}
