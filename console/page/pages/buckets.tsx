// From a document to its bucket to its replicas, and the buckets that are not in sync.

import { useState } from "preact/hooks";
import { query, usePoll } from "../lib/api";
import { bytes, command, count, percent, plural, rate, time } from "../lib/format";
import { go, href } from "../lib/route";
import type { Bucket, HotSlices, Replica, Slice, UnhealthyBuckets } from "../lib/types";
import { Code, Input, Loading, Messages, Panel, Problem, State, toneOf } from "../parts/basic";
import { Table } from "../parts/table";
import type { PageProps } from "../parts/page";

const kPeriod = 5000;
const kMax = 200;
const kHot = 20;

function documentText(replica: Replica): string {
  const document = replica.document;
  if (!document) return "–";
  if (document.error) return document.error.message;
  if (document.version_unix_us !== null) return `version ${time(document.version_unix_us)}, checksum ${document.checksum}`;
  return document.removed_unix_us ? `removed ${time(document.removed_unix_us)}` : "does not have it";
}

function BucketPanel({ bucket, hasDocument }: { bucket: Bucket; hasDocument: boolean }) {
  const sums = new Set(bucket.replicas.filter((replica) => !replica.error && replica.is_member).map((replica) => replica.checksum));
  return (
    <Panel title={<>Bucket <span class="mono">{bucket.bucket}</span></>}
      aside={<State tone={toneOf(bucket.state)}>{bucket.state}</State>}>
      {bucket.reason && <div class="warned">{bucket.reason}</div>}
      <p class="quiet">
        {bucket.bits} bits, owned by {bucket.distributor}, replica set {bucket.replica_set.join(", ") || "empty"} of epoch {bucket.epoch}.{" "}
        {sums.size === 1 ? "All members have equal contents." : sums.size > 1 ? "The contents of the members differ." : ""}
      </p>
      <Table label="Replicas" rows={bucket.replicas} keyOf={(replica) => replica.node} empty="No storage node has a replica." columns={[
        { name: "node", cell: (replica) => replica.node },
        { name: "state", cell: (replica) => replica.error
          ? <Problem error={new Error(replica.error.message)} />
          : <State tone={replica.is_damaged ? "bad" : toneOf(replica.state)}>{replica.state}</State> },
        ...(hasDocument ? [{ name: "the document", cell: (replica: Replica) => <span class="wrap">{documentText(replica)}</span> }] : []),
        { name: "documents", isNumber: true, cell: (replica) => count(replica.documents) },
        { name: "entries", isNumber: true, cell: (replica) => count(replica.entries) },
        { name: "bytes", isNumber: true, cell: (replica) => bytes(replica.bytes) },
        { name: "checksum", cell: (replica) => <span class="mono">{replica.checksum}</span> },
        { name: "newest", cell: (replica) => <span class="nowrap">{time(replica.newest_unix_us)}</span> },
      ]} />
    </Panel>
  );
}

function Found({ id, bucket }: { id: string; bucket: string }) {
  const path = id ? query("/cluster/v1/replicas", { id }) : bucket ? `/cluster/v1/buckets/${encodeURIComponent(bucket)}` : "";
  const found = usePoll<{ buckets: Bucket[] }>(path);
  if (!path) return null;
  return (
    <>
      {found.isLoading && <Loading />}
      <Problem error={found.error} doing={id ? "The bucket of the document" : "The bucket"} />
      {found.data?.buckets.length === 0 && <Panel><p>{id
        ? "The bucket of this document does not exist: nothing was written to it yet."
        : "There is no such bucket, and none that contains it."}</p></Panel>}
      {found.data?.buckets.map((one) => <BucketPanel key={one.bucket} bucket={one} hasDocument={Boolean(id)} />)}
      <Code label="The same on the command line" text={command("fjord", "bucket", "show", id || bucket)} />
    </>
  );
}

function Unhealthy() {
  const answer = usePoll<UnhealthyBuckets>(query("/cluster/v1/buckets", { max: kMax }), kPeriod);
  const all = answer.data?.buckets ?? [];
  return (
    <Panel title="Buckets that are not in sync" aside={answer.data && <span class="quiet">
      {answer.data.more ? `the worst ${all.length}` : plural(all.length, "bucket")}</span>}>
      <Problem error={answer.error} />
      {answer.isLoading && <Loading />}
      {answer.data && <Messages kind="warning" of={answer.data.silent.map((node) => `${node} does not answer: its buckets are not in this list.`)} />}
      {answer.data && <Table label="Buckets that are not in sync" rows={all} keyOf={(one) => one.bucket} empty="All buckets are in sync."
        onOpen={(one) => go("buckets", { bucket: one.bucket })} columns={[
          { name: "bucket", by: (one) => one.bucket, cell: (one) => <a class="mono" href={href("buckets", { bucket: one.bucket })}>{one.bucket}</a> },
          { name: "state", by: (one) => one.state, cell: (one) => <State tone={toneOf(one.state)}>{one.state}</State> },
          { name: "reason", isText: true, cell: (one) => one.reason },
          { name: "members", cell: (one) => one.members.join(", ") },
          { name: "catching up", cell: (one) => one.catching_up.join(", ") },
          { name: "damaged", cell: (one) => one.damaged.join(", ") },
        ]} />}
    </Panel>
  );
}

/** The buckets with the most load, as the balancer measures it. */
function Hot() {
  const answer = usePoll<HotSlices>(query("/cluster/v1/balancer/slices", { max: kHot }), kPeriod);
  const rows = answer.data?.slices ?? [];
  const load = (slice: Slice) => answer.data?.unit === "processor_share" ? percent(slice.load) : rate(slice.load);
  return (
    <Panel title="Buckets with the most load" aside={answer.data && <span class="quiet">{rows.length === kHot ? `the first ${kHot}` : plural(rows.length, "bucket")}</span>}>
      <Problem error={answer.error} />
      {answer.isLoading && <Loading />}
      {answer.data && <Table label="Buckets with the most load" rows={rows} keyOf={(one) => one.bucket}
        empty="No load is measured: the live setting balancer.mode=advise turns that on, and moves nothing."
        onOpen={(one) => go("buckets", { bucket: one.bucket })} columns={[
          { name: "bucket", cell: (one) => <a class="mono" href={href("buckets", { bucket: one.bucket })}>{one.bucket}</a> },
          { name: "load", isNumber: true, by: (one) => one.load, cell: load },
          { name: "reads", isNumber: true, by: (one) => one.reads_per_s, cell: (one) => rate(one.reads_per_s) },
          { name: "writes", isNumber: true, by: (one) => one.writes_per_s, cell: (one) => rate(one.writes_per_s) },
          { name: "bytes", isNumber: true, by: (one) => one.bytes, cell: (one) => bytes(one.bytes) },
          { name: "nodes", cell: (one) => one.nodes.join(", ") },
          { name: "moves", isText: true, cell: (one) => one.why_not || "about to move" },
        ]} />}
      <Code label="The same on the command line" text={`fjord balance slices --limit ${kHot}`} />
    </Panel>
  );
}

export function BucketsPage({ parameters }: PageProps) {
  const id = parameters.get("id") ?? "";
  const bucket = parameters.get("bucket") ?? "";
  const [text, setText] = useState(id || bucket);
  return (
    <>
      <header><h1>Buckets</h1></header>
      <Panel title="Where is it?">
        <form onSubmit={(event) => {
          event.preventDefault();
          const wanted = text.trim();
          go("buckets", wanted.startsWith("id:") ? { id: wanted } : { bucket: wanted });
        }}>
          <div class="fields">
            <Input isWide label="Id of a document, or name of a bucket" value={text} onInput={setText} placeholder="id:shop:item::1" isRequired />
          </div>
          <button type="submit" class="main">Show</button>
        </form>
      </Panel>
      <Found id={id} bucket={bucket} />
      <Unhealthy />
      <Hot />
    </>
  );
}
