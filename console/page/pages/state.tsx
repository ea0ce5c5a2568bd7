// The cluster state and its history.

import { query, usePoll } from "../lib/api";
import { count, duration, time } from "../lib/format";
import { note, recordOf } from "../lib/route";
import type { ClusterState, StateChange } from "../lib/types";
import { Code, Input, Loading, Panel, Problem, Select } from "../parts/basic";
import type { PageProps } from "../parts/page";
import { Table } from "../parts/table";

const kPeriod = 5000;

function Current({ state }: { state: ClusterState }) {
  return (
    <Panel title="In force">
      <dl class="facts">
        <dt>cluster state</dt><dd class="mono">{state.state}</dd>
        <dt>placement</dt><dd class="mono">{state.distribution}</dd>
        <dt>leader</dt><dd>{state.leader || "none"}, term {count(state.term)}</dd>
        <dt>schemas</dt><dd>version {count(state.schema_version)}</dd>
        <dt>live configuration</dt><dd>version {count(state.config_version)}</dd>
      </dl>
      {state.pending_state && <div class="warned">
        <strong>Not in force yet:</strong> <span class="mono">{state.pending_state}</span>
        {state.pending_distribution && state.pending_distribution !== state.distribution && <> with <span class="mono">{state.pending_distribution}</span></>}
        {state.waits_for && <>. It waits: {state.waits_for}</>}
      </div>}
    </Panel>
  );
}

/** Splits at commas that stand outside of brackets. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let begin = 0;
  for (let at = 0; at < text.length; ++at) {
    if (text[at] === "[") ++depth;
    else if (text[at] === "]") --depth;
    else if (depth === 0 && text.startsWith(", ", at)) {
      parts.push(text.slice(begin, at));
      begin = at + 2;
    }
  }
  parts.push(text.slice(begin));
  return parts;
}

/**
 * Returns a difference of cluster states, "version: 1 => 2, storage: [1: [up => down, ...]]", as lines: "storage 1: up → down; ...".
 * Other texts are one line.
 */
export function linesOf(what: string): string[] {
  const arrows = (text: string) => text.replaceAll(/: +=> /g, ": ").replaceAll("=>", "→");
  if (!what.startsWith("version: ")) return [arrows(what)];
  const lines: string[] = [];
  const add = (path: string, text: string) => {
    const plain: string[] = [];
    for (const part of partsOf(text)) {
      const nested = /^([\w ]+): \[(.*)\]$/s.exec(part);
      if (nested) add(`${path} ${nested[1]}`.trim(), nested[2]!);
      else plain.push(part);
    }
    if (path && plain.length > 0) lines.push(`${path}: ${plain.map(arrows).join("; ")}`);
    if (!path) lines.unshift(...plain.map(arrows));
  };
  add("", what);
  return lines;
}

function entered(entry: StateChange): string {
  if (entry.active_unix_us === 0) return entry.what.startsWith("version: ") ? "not in force" : "";
  return `in force ${duration(Math.max(0, (entry.active_unix_us - entry.unix_us) / 1e6))} later`;
}

const kKinds = ["nodes", "slow nodes", "settings", "schemas", "placement"];

/** Returns of which kind a change is, by its words. */
export function kindOf({ what, why }: Pick<StateChange, "what" | "why">): string {
  if (/^configuration /.test(what)) return "settings";
  if (/^schemas? /.test(what)) return "schemas";
  if (/\bslow\b/.test(`${what} ${why}`) && !/: (up|down|retired|maintenance) => /.test(what)) return "slow nodes";
  return /\b(bits|distribution|overrides?|except):/.test(what) ? "placement" : "nodes";
}

export function StatePage({ parameters }: PageProps) {
  const all = parameters.get("all") === "yes";
  const filter = parameters.get("with") ?? "";
  const kind = parameters.get("kind") ?? "";
  const show = (change: Record<string, string>) => note("state", { ...recordOf(parameters), ...change });
  const state = usePoll<ClusterState>("/cluster/v1/state", kPeriod);
  const history = usePoll<{ entries: StateChange[] }>(query("/cluster/v1/state/history", { max: all ? "0" : "100" }), kPeriod);
  const words = filter.toLowerCase();
  const entries = (history.data?.entries ?? []).toReversed()
    .filter((entry) => (!kind || kindOf(entry) === kind) && `${entry.what} ${entry.why} ${entry.who} ${entry.version}`.toLowerCase().includes(words));
  return (
    <>
      <header><h1>State</h1></header>
      <Problem error={state.error} doing="The cluster state" />
      {state.data && <Current state={state.data} />}
      <Panel title="History" aside={<>
        <button type="button" onClick={() => show({ all: all ? "" : "yes" })}>{all ? "The newest 100" : "All that is kept"}</button>
      </>}>
        <div class="fields"><Input label="Only entries with" value={filter} onInput={(text) => show({ with: text })} placeholder="storage.1" />
          <Select label="Kind" value={kind} options={[["", "all"], ...kKinds.map((one): [string, string] => [one, one])]} onChange={(one) => show({ kind: one })} /></div>
        <Problem error={history.error} />
        {history.isLoading && <Loading />}
        {history.data && <Table label="History of the cluster state" rows={entries} keyOf={(entry, at) => `${entry.version}-${entry.term}-${entry.unix_us}-${at}`}
          empty="No entry has these words." columns={[
            { name: "version", isNumber: true, cell: (entry) => count(entry.version) },
            { name: "time", cell: (entry) => <span class="nowrap" title={entered(entry)}>{time(entry.unix_us)}</span> },
            { name: "what changed", isText: true, cell: (entry) => <>
              {linesOf(entry.what).map((line) => <div key={line} class="wrap">{line}</div>)}
              {entry.active_unix_us === 0 && <div class="quiet">{entered(entry)}</div>}
            </> },
            { name: "why", isText: true, cell: (entry) => <span class="wrap">{entry.why}</span> },
            { name: "who", cell: (entry) => entry.who },
            { name: "term", isNumber: true, cell: (entry) => count(entry.term) },
          ]} />}
        <Code label="The same on the command line" text="fjord state log" />
      </Panel>
    </>
  );
}
