// Requests to the gateway that serves this page, and whether it answers.

import { useEffect, useState } from "preact/hooks";
import { readJson, writeJson } from "./json";
import type { Failure } from "./types";

/** A request that the gateway refused, or that did not reach it (status 0). */
export class ApiError extends Error {
  constructor(readonly status: number, readonly failure: Failure) {
    super(failure.message);
  }
  get isLost() {
    return this.status === 0;
  }
}

type Listener = () => void;

/** Whether the gateway answers, and since when not. While it does not, it is asked once a second. */
class Gateway {
  lostSince: number | null = null;
  /** Rises each time that the gateway is back. */
  returns = 0;
  private listeners = new Set<Listener>();

  lose() {
    if (this.lostSince !== null) return;
    this.lostSince = Date.now();
    this.tell();
    this.retryLater();
  }

  listen(listener: Listener): Listener {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private retryLater() {
    setTimeout(async () => {
      try {
        const answer = await fetch("/ApplicationStatus", { cache: "no-store", signal: AbortSignal.timeout(3000) });
        if (!answer.ok) throw new Error();
        this.lostSince = null;
        ++this.returns;
        this.tell();
      } catch {
        this.retryLater();
      }
    }, 1000);
  }

  private tell() {
    for (const listener of [...this.listeners]) listener();
  }
}

export const gateway = new Gateway();

export function useGateway(): { lostSince: number | null; returns: number } {
  const [, redraw] = useState(0);
  useEffect(() => gateway.listen(() => redraw((n) => n + 1)), []);
  return { lostSince: gateway.lostSince, returns: gateway.returns };
}

async function failureOf(answer: Response): Promise<Failure> {
  const body = await answer.text();
  try {
    const parsed = readJson(body) as Partial<Failure>;
    if (parsed.message) return parsed as Failure;
  } catch {
    // Not an answer of the gateway itself, but of something in between.
  }
  return { message: `${answer.status} ${answer.statusText}`.trim() };
}

export interface SendOptions {
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/** Sends a request and returns the JSON of the answer. Throws ApiError; AbortError if the signal ended it. */
export async function send<T>(method: string, path: string, options: SendOptions = {}): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      cache: "no-store",
      headers: { ...(options.body === undefined ? {} : { "Content-Type": "application/json" }), ...options.headers },
      body: options.body === undefined ? undefined : writeJson(options.body),
      signal: options.signal,
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    gateway.lose();
    throw new ApiError(0, { message: "The gateway does not answer." });
  }
  if (!answer.ok) throw new ApiError(answer.status, await failureOf(answer));
  return readJson(await answer.text()) as T;
}

export const get = <T>(path: string, options?: SendOptions) => send<T>("GET", path, options);
export const post = <T>(path: string, body?: unknown, options?: SendOptions) =>
  send<T>("POST", path, { ...options, body });

/** Returns a path with a query; parameters without a value are left out. */
export function query(path: string, parameters: Record<string, string | number | undefined | false>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== false && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

export interface Answer<T> {
  data: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
  /** Asks again, at once. */
  reload: () => void;
}

/**
 * Asks for `path`, again each `period` milliseconds (0: once), and when the gateway is back. The last data stay while an error is
 * shown beside them. A page that is not visible does not ask. An empty path asks for nothing.
 */
export function usePoll<T>(path: string, period = 0): Answer<T> {
  const [answer, setAnswer] = useState<{ path: string; data?: T; error?: ApiError }>({ path });
  const [asked, setAsked] = useState(0);
  const { returns, lostSince } = useGateway();

  useEffect(() => {
    if (!path) return;
    const abort = new AbortController();
    let timer: number | undefined;
    const ask = async () => {
      try {
        const data = await get<T>(path, { signal: abort.signal });
        setAnswer({ path, data });
      } catch (error) {
        if (abort.signal.aborted) return;
        setAnswer((before) => ({ path, data: before.path === path ? before.data : undefined, error: error as ApiError }));
      }
      if (period > 0 && !document.hidden && gateway.lostSince === null) timer = setTimeout(ask, period);
    };
    const onShow = () => {
      if (document.hidden) return clearTimeout(timer);
      clearTimeout(timer);
      ask();
    };
    ask();
    if (period > 0) document.addEventListener("visibilitychange", onShow);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onShow);
    };
  }, [path, period, returns, asked]);

  const isCurrent = answer.path === path;
  const error = isCurrent ? answer.error : undefined;
  return {
    data: isCurrent ? answer.data : undefined,
    // The page says once, at its top, that the gateway is away.
    error: error?.isLost && lostSince !== null ? undefined : error,
    isLoading: Boolean(path) && (!isCurrent || (answer.data === undefined && (answer.error === undefined || (answer.error.isLost && lostSince !== null)))),
    reload: () => setAsked((n) => n + 1),
  };
}

/** Receives the events of an address until its event `end`. */
export function useEvents<T>(path: string): { data: T | undefined; isOver: boolean } {
  const [state, setState] = useState<{ path: string; data?: T; isOver: boolean }>({ path, isOver: false });
  const { returns } = useGateway();
  useEffect(() => {
    if (!path) return;
    const source = new EventSource(path);
    const take = (isOver: boolean) => (event: MessageEvent<string>) => {
      setState({ path, data: readJson(event.data) as T, isOver });
      if (isOver) source.close();
    };
    source.addEventListener("progress", take(false));
    source.addEventListener("end", take(true));
    return () => source.close();
  }, [path, returns]);
  return state.path === path ? { data: state.data, isOver: state.isOver } : { data: undefined, isOver: false };
}
