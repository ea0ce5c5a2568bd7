// The nodes, their load and space.

import { usePoll } from "../lib/api";
import { bytes, count, duration, latency, percent, rate, short } from "../lib/format";
import { go, href } from "../lib/route";
import type { ClusterNode, ClusterStatus, Load, NodeLoad } from "../lib/types";
import { Bar, Loading, Panel, Problem, State, Table, toneOf } from "../parts/basic";
import type { PageProps } from "../parts/page";

const kPeriod = 2000;
const kStages = ["not known", "normal", "warns", "throttles writes", "refuses users' writes", "refuses all writes"];

function stateText(node: ClusterNode): string {
  const wanted = node.wanted && node.wanted !== node.state ? `, wanted ${node.wanted}` : "";
  return node.state + wanted;
}

function Versions({ node, status }: { node: ClusterNode; status: ClusterStatus }) {
  const behind = node.state_version < status.state_version || node.config_version < status.config_version;
  const title = "versions of the cluster state and of the live configuration that the node has applied";
  return <span class={behind ? "warned" : ""} title={behind ? `${title}; the cluster has newer ones` : title}>{node.state_version} / {node.config_version}</span>;
}

function NodeDetails({ node, load }: { node: ClusterNode; load: NodeLoad | undefined }) {
  const facts: [string, string | false][] = [
    ["state", stateText(node)],
    ["reason", node.reason],
    ["slow", node.slow || (node.role === "storage" && "no")],
    ["space", node.space],
    ["disk stage", node.role === "storage" && kStages[node.space_stage]!],
    ["address", node.address],
    ["group", node.group],
    ["capacity", node.capacity],
    ["last answer", node.answered_seconds_ago === null ? "it never answered" : `${duration(node.answered_seconds_ago)} ago`],
    ["in maintenance", node.maintenance_seconds !== null && `${duration(node.maintenance_seconds)}${node.maintenance_seconds_left === null ? "" : `, ${duration(node.maintenance_seconds_left)} left`}`],
    ["processors in use", load?.cpus != null && short(load.cpus)],
    ["memory", load?.resident_bytes != null && bytes(load.resident_bytes)],
    ["operations", load?.operations_per_second != null && rate(load.operations_per_second)],
    ["visitors", load?.visitors != null && count(load.visitors)],
  ];
  return (
    <Panel title={node.name} aside={<a class="button" href={href("nodes")}>Close</a>}>
      <dl class="facts">{facts.filter(([, value]) => value).map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
    </Panel>
  );
}

function disk(load: NodeLoad | undefined, node: ClusterNode) {
  if (load?.used_bytes == null || load.limit_bytes == null) return <span class="quiet">{kStages[node.space_stage]}</span>;
  const share = load.used_bytes / Math.max(1, load.limit_bytes);
  return <span class="nowrap"><Bar share={share} tone={node.space_stage >= 4 ? "bad" : node.space_stage >= 2 ? "warn" : "idle"}
    label={`${bytes(load.used_bytes)} of ${bytes(load.limit_bytes)}: ${kStages[node.space_stage]}`} /> {percent(share)}
    {node.space_stage > 1 && <div class="quiet">{kStages[node.space_stage]}</div>}</span>;
}

export function NodesPage({ parameters }: PageProps) {
  const status = usePoll<ClusterStatus>("/cluster/v1/status", kPeriod);
  const load = usePoll<Load>("/cluster/v1/load", kPeriod);
  const loadOf = (node: ClusterNode) => load.data?.nodes.find((one) => one.node === node.name);
  const selected = status.data?.nodes.find((node) => node.name === parameters.get("node"));
  const group = (role: string, title: string) => {
    const nodes = status.data!.nodes.filter((node) => node.role === role);
    if (nodes.length === 0) return null;
    const isStorage = role === "storage";
    return (
      <Panel title={title} aside={<span class="quiet">{nodes.filter((node) => node.state === "up").length} of {nodes.length} up</span>}>
        <Table label={title} rows={nodes} keyOf={(node) => node.name} onOpen={(node) => go("nodes", { node: node.name })} columns={[
          { name: "node", cell: (node) => <a href={href("nodes", { node: node.name })}>{node.name}</a> },
          { name: "state", isText: true, cell: (node) => <>
            <State tone={toneOf(node.state)}>{stateText(node)}</State>
            {node.slow && <div><State tone="warn">slow</State> <span class="quiet">{node.slow}</span></div>}
            {node.state !== "up" && node.reason && <div class="quiet">{node.reason}</div>}
          </> },
          { name: "ops", isNumber: true, cell: (node) => rate(loadOf(node)?.operations_per_second) },
          { name: "p99", isNumber: true, isExtra: true, cell: (node) => latency(loadOf(node)?.p99_seconds) },
          { name: "processors", isNumber: true, isExtra: true, cell: (node) => short(loadOf(node)?.cpus) },
          { name: "memory", isNumber: true, isWideOnly: true, cell: (node) => bytes(loadOf(node)?.resident_bytes) },
          ...(role === "fleetcontroller" ? [] : [{ name: "buckets", isNumber: true, isWideOnly: true, cell: (node: ClusterNode) => count(node.buckets) }]),
          ...(isStorage ? [
            { name: "documents", isNumber: true, isExtra: true, cell: (node: ClusterNode) => count(node.documents) },
            { name: "bytes", isNumber: true, isExtra: true, cell: (node: ClusterNode) => bytes(node.bytes) },
            { name: "disk", cell: (node: ClusterNode) => disk(loadOf(node), node) },
          ] : []),
          { name: "versions", isNumber: true, isExtra: true, cell: (node) => <Versions node={node} status={status.data!} /> },
        ]} />
      </Panel>
    );
  };
  return (
    <>
      <header><h1>Nodes</h1></header>
      <Problem error={status.error} doing="The nodes" />
      {status.isLoading && <Loading />}
      {selected && <NodeDetails node={selected} load={loadOf(selected)} />}
      <Problem error={load.error} doing="Load" />
      {status.data && <>
        {group("storage", "Storage nodes")}
        {group("distributor", "Distributors")}
        {group("fleetcontroller", "Fleet controllers")}
      </>}
    </>
  );
}
