// What a person wants to know first: is it well, how busy is it, how full is it, what is it doing.

import { usePoll } from "../lib/api";
import { bytes, count, duration, latency, percent, plural, rate } from "../lib/format";
import { href } from "../lib/route";
import type { ClusterStatus, DocumentType, Job, Load, NodeLoad } from "../lib/types";
import { Bar, Figure, Loading, Messages, Panel, Parts, Problem, State, toneOf } from "../parts/basic";
import { Table } from "../parts/table";
import { Begin } from "../parts/begin";
import { Chart } from "../parts/chart";
import { JobProgress, jobName } from "../parts/job";

const kPeriod = 2000;
const kSchemasPeriod = 10_000;

const kHealth = {
  healthy: ["good", "Healthy", "All documents are served from as many replicas as configured."],
  degraded: ["warn", "Degraded", "All documents are served, with fewer replicas or slower than configured."],
  unavailable: ["bad", "Unavailable", "Some documents cannot be read or written."],
} as const;

/** Says in a sentence how many buckets and nodes there are. */
function summary(status: ClusterStatus): string {
  const up = (role: string) => status.nodes.filter((node) => node.role === role && node.state === "up").length;
  const all = (role: string) => status.nodes.filter((node) => node.role === role).length;
  const part = (role: string, name: string) =>
    up(role) === all(role) ? plural(all(role), name) : `${up(role)} of ${plural(all(role), name)}`;
  return `${part("storage", "storage node")} and ${part("distributor", "distributor")} up, ${plural(status.buckets.total, "bucket")}, ` +
    `${plural(status.document_replicas, "stored replica")} of documents, ${bytes(status.bytes)}.`;
}

function Health({ status }: { status: ClusterStatus }) {
  const [tone, word, meaning] = kHealth[status.health];
  return (
    <Panel>
      <div class="headline" aria-live="polite">
        <State tone={tone}>{word}</State>
        <span>{status.reasons.length === 0 || status.health === "healthy" ? meaning : ""}</span>
      </div>
      <Messages of={status.reasons} kind={status.health === "unavailable" ? "problem" : "warning"} />
      <p class="quiet">{summary(status)}</p>
      <Messages of={status.notes} kind="note" />
    </Panel>
  );
}

function Operations({ load }: { load: Load }) {
  const times = load.points.map((point) => point.unix_us / 1e6);
  const last = load.points.at(-1);
  return (
    <div class="grid">
      <Panel title="Operations a second">
        <Figure name="reads and writes of clients" value={last ? rate(last.reads_per_second + last.writes_per_second) : "–"}
          note={load.period_seconds === null ? "measuring…" : `in the last ${duration(load.period_seconds)}`} />
        <Chart label="Operations a second, last ten minutes" times={times} format={rate} lines={[
          { name: "reads", values: load.points.map((point) => point.reads_per_second), color: "--accent" },
          { name: "writes", values: load.points.map((point) => point.writes_per_second), color: "--second" },
        ]} />
      </Panel>
      <Panel title="Latency at the distributors">
        <Figure name="p99 of all clients' operations" value={latency(last?.p99_seconds)}
          note={last?.p99_seconds == null ? "nothing was asked" : `p50 ${latency(last.p50_seconds)}`} />
        <Chart label="Latency, last ten minutes" times={times} format={latency} lines={[
          { name: "p99", values: load.points.map((point) => point.p99_seconds), color: "--accent" },
          { name: "p50", values: load.points.map((point) => point.p50_seconds), color: "--second" },
        ]} />
      </Panel>
    </div>
  );
}

/** Returns the node that can take the fewest bytes more, and the one that is full first. */
function capacityOf(nodes: NodeLoad[]) {
  const measured = nodes.filter((node) => node.used_bytes !== null && node.limit_bytes !== null);
  const share = (node: NodeLoad) => node.used_bytes! / Math.max(1, node.limit_bytes!);
  const fullest = measured.toSorted((a, b) => share(b) - share(a))[0];
  const first = measured.filter((node) => node.seconds_until_full !== null)
    .toSorted((a, b) => a.seconds_until_full! - b.seconds_until_full!)[0];
  return { measured, fullest, first, share };
}

function Capacity({ load }: { load: Load }) {
  const { measured, fullest, first, share } = capacityOf(load.nodes);
  if (!fullest) return <Panel title="Capacity"><p class="quiet">No storage node shows its space.</p></Panel>;
  const window = load.growth_seconds;
  const forecast = window === null
    ? "The growth is known after five minutes."
    : first
      ? `At the growth of the last ${duration(window)}, ${first.node} refuses puts in about ${duration(first.seconds_until_full)}.`
      : `Nothing has grown in the last ${duration(window)}.`;
  const tone = (node: NodeLoad) => (share(node) >= 1 ? "bad" : share(node) >= 0.9 ? "warn" : "idle");
  return (
    <Panel title="Capacity">
      <Figure name={`used of what ${fullest.node}, the fullest node, may hold`} value={percent(share(fullest))} note={forecast} />
      <Table label="Space of the storage nodes" rows={measured} keyOf={(node) => node.node} columns={[
        { name: "node", by: (node) => node.node, cell: (node) => node.node },
        { name: "used", isNumber: true, by: (node) => node.used_bytes, cell: (node) => bytes(node.used_bytes) },
        { name: "limit", isNumber: true, cell: (node) => bytes(node.limit_bytes) },
        { name: "", cell: (node) => <Bar share={share(node)} tone={tone(node)} label={`${percent(share(node))} of the limit`} /> },
        { name: "growth", isNumber: true, cell: (node) =>
          node.growth_bytes_per_second === null ? "–" : `${bytes(node.growth_bytes_per_second * 3600)}/h` },
      ]} />
    </Panel>
  );
}

function Buckets({ status }: { status: ClusterStatus }) {
  const { buckets } = status;
  const few = buckets.under_replicated;
  const behind = Math.max(0, buckets.out_of_sync - buckets.collecting - buckets.damaged - few);
  return (
    <Panel title="Buckets by state" aside={<a href={href("buckets")}>Which are not in sync</a>}>
      <Parts total={buckets.total} parts={[
        { name: "in sync", value: buckets.in_sync, tone: "good" },
        { name: "out of sync", value: behind, tone: "warn" },
        { name: "too few replicas", value: Math.max(0, few - buckets.damaged), tone: "bad" },
        { name: "being collected", value: buckets.collecting, tone: "warn" },
        { name: "damaged", value: buckets.damaged, tone: "bad" },
        { name: "unavailable", value: buckets.unavailable, tone: "bad" },
      ]} />
      <p class="quiet">
        {plural(few, "bucket")} with too few replicas{few > 0 && ", whose documents another loss may take"}
        {buckets.failing > 0 && `, ${buckets.failing} whose merges fail again and again`}
        {buckets.unplaced > 0 && `, ${buckets.unplaced} without a storage node to be on`}.
      </p>
    </Panel>
  );
}

function Work({ status, load }: { status: ClusterStatus; load: Load | undefined }) {
  const jobs = usePoll<{ jobs: Job[] }>("/jobs/v1", kPeriod);
  const running = (jobs.data?.jobs ?? []).filter((job) => !["done", "failed", "cancelled"].includes(job.state));
  const moving = status.buckets.out_of_sync - status.buckets.collecting;
  const visitors = load?.nodes.reduce((sum, node) => sum + (node.visitors ?? 0), 0) ?? 0;
  const away = status.nodes.filter((node) => node.maintenance_seconds !== null);
  return (
    <Panel title="Running work" aside={<a href={href("jobs")}>All jobs</a>}>
      <Problem error={jobs.error} doing="Jobs" />
      <Table label="Running jobs" rows={running} keyOf={(job) => job.job} empty="No job runs." columns={[
        { name: "job", cell: (job) => <a href={href("jobs", { job: job.job })}>{jobName(job)}</a> },
        { name: "state", cell: (job) => <State tone={toneOf(job.state)}>{job.state === "running" ? job.phase : job.state}</State> },
        { name: "done", cell: (job) => <JobProgress job={job} /> },
      ]} />
      <ul class="messages note">
        <li>{moving > 0 ? `${plural(moving, "bucket")} wait for a merge or are being merged.` : "No bucket waits for a merge."}</li>
        <li>{plural(visitors, "visitor")} of visits and jobs on the storage nodes.</li>
        {away.map((node) => <li key={node.name}>{node.name} is in maintenance since {duration(node.maintenance_seconds)}
          {node.maintenance_seconds_left !== null && `, and counts as down in ${duration(node.maintenance_seconds_left)}`}.</li>)}
      </ul>
    </Panel>
  );
}

export function OverviewPage() {
  const status = usePoll<ClusterStatus>("/cluster/v1/status", kPeriod);
  const load = usePoll<Load>("/cluster/v1/load", kPeriod);
  const schemas = usePoll<{ types: DocumentType[] }>("/schemas/v1", kSchemasPeriod);
  const isEmpty = schemas.data !== undefined && schemas.data.types.every((type) => type.name.startsWith("fjord_"));
  return (
    <>
      <header>
        <h1>Overview</h1>
        {status.data && <span class="quiet">state version {count(status.data.state_version)}, schema version{" "}
          {count(status.data.schema_version)}, live configuration {count(status.data.config_version)}</span>}
      </header>
      <Problem error={status.error} doing="The state of the cluster is not known" />
      {status.isLoading && <Loading />}
      {status.data && <Health status={status.data} />}
      {isEmpty && <Begin />}
      <Problem error={load.error} doing="Figures" />
      {load.data && load.data.silent.length > 0 && <div class="warned">
        Without the figures of {load.data.silent.join(", ")}: no metrics came from there.</div>}
      {load.data && <Operations load={load.data} />}
      <div class="grid">
        {status.data && <Buckets status={status.data} />}
        {load.data && <Capacity load={load.data} />}
      </div>
      <div class="grid">
        {status.data && <Work status={status.data} load={load.data} />}
      </div>
    </>
  );
}
