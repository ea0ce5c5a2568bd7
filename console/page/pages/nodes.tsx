// The nodes, their load and space, and changes of them: first the plan, then the progress.

import { useEffect, useState } from "preact/hooks";
import { post, query, useEvents, usePoll, type Answer } from "../lib/api";
import { bytes, command, count, duration, latency, percent, plural, rate } from "../lib/format";
import { go, href, note } from "../lib/route";
import type { ClusterNode, ClusterStatus, Load, NodeLoad, NodePlan, NodeProgress } from "../lib/types";
import { Bar, Code, Dialog, Input, Loading, Messages, Panel, Problem, Select, State, toneOf, useAction } from "../parts/basic";
import { Table } from "../parts/table";
import type { PageProps } from "../parts/page";

const kPeriod = 2000;
const kStages = ["not known", "normal", "warns", "throttles writes", "refuses users' writes", "refuses all writes"];

/** What can be done with a node: the words of the gateway and of the command line, and what it means. */
const kActions: Record<string, { name: string; meaning: string }> = {
  maintenance: { name: "Maintenance", meaning: "The node may stop for a while: its replicas are not created elsewhere meanwhile." },
  up: { name: "Back to normal", meaning: "Takes back maintenance, retiring or down." },
  retire: { name: "Retire", meaning: "Its buckets move to other nodes, while it goes on serving." },
  down: { name: "Count as down", meaning: "The cluster goes on without it, whether it answers or not." },
  remove: { name: "Remove", meaning: "Takes the node out of the cluster, once it is retired and empty." },
  capacity: { name: "Capacity", meaning: "Its share of the buckets beside other nodes; 1 is usual." },
};

interface Change {
  action: string;
  nodes: string[];
  address: string;
  group: string;
  capacity: string;
  reason: string;
}

/** Returns the command that does the same; empty if there is none. */
function commandOf(change: Change): string {
  if (change.action === "down") return "";
  const words = change.action === "add"
    ? ["node", "add", change.nodes[0]!, "--address", change.address, ...(change.group ? ["--group", change.group] : [])]
    : ["node", change.action, ...change.nodes];
  const capacity = change.capacity ? [change.action === "capacity" ? "--to" : "--capacity", change.capacity] : [];
  return command("fjord", ...words, ...capacity, ...(change.reason ? ["--reason", change.reason] : []));
}

function Plan({ plan }: { plan: NodePlan }) {
  return (
    <>
      <h3>{plan.refusals.length > 0 ? "The cluster refuses it" : "What happens"}</h3>
      <Messages of={plan.refusals} kind="problem" />
      <dl class="facts">
        <dt>buckets that move</dt><dd>{count(plan.buckets_moved)} of {count(plan.buckets_total)}</dd>
        <dt>replicas to copy</dt><dd>{count(plan.replicas_moved)}, about {bytes(plan.bytes_moved)}</dd>
        <dt>takes about</dt><dd>{plan.duration_seconds === 0 ? "no time" : duration(plan.duration_seconds)}</dd>
      </dl>
      <Messages of={plan.warnings} kind="warning" />
      <Messages of={plan.notes} kind="note" />
    </>
  );
}

/** What a change waits for, in words. */
export function waitText(progress: NodeProgress): string {
  if (progress.waits_for.length > 0) return `Waiting until the node is up. ${progress.waits_for.join(", ")}`;
  return `${progress.in_force ? "In force." : "Not on all nodes yet."} ${plural(progress.buckets_left, "bucket")} left`;
}

/** A change that was made, as the address has it. */
interface Followed {
  action: string;
  nodes: string;
  state_version: string;
}

function followedIn(parameters: URLSearchParams): Followed | undefined {
  const action = parameters.get("action");
  return action ? { action, nodes: parameters.get("changed") ?? "", state_version: parameters.get("state") ?? "0" } : undefined;
}

/** Follows a change until it is in force, no bucket is left to move, and the tables below show it. */
function Progress({ change, status, onClose }: { change: Followed; status: Answer<ClusterStatus>; onClose: () => void }) {
  const path = query("/cluster/v1/nodes/progress", { action: change.action, nodes: change.nodes, state_version: change.state_version });
  const events = useEvents<NodeProgress>(path);
  const data = events.data;
  const [asked, setAsked] = useState<{ before?: ClusterStatus }>();
  useEffect(() => {
    if (!events.isOver) return;
    setAsked({ before: status.data });
    status.reload();
  }, [events.isOver]);
  const isOver = events.isOver && asked !== undefined && status.data !== asked.before;
  return (
    <Panel title={<>{kActions[change.action]?.name ?? "Add"}: {change.nodes.replaceAll(",", ", ")}</>}
      aside={<button type="button" onClick={onClose}>Close</button>}>
      {!data && <p role="status">The change is made; waiting for its progress…</p>}
      {data && !data.known && <p>The cluster does not say how far it is.</p>}
      {data?.known && <div aria-live="polite">
        <p>
          {isOver ? <State tone="good">Done</State> : waitText(data)}
          {!isOver && data.seconds_left !== null && data.seconds_left > 0 && `, about ${duration(data.seconds_left)}`}
        </p>
        <span class="row">
          <Bar share={isOver ? 1 : data.fraction_done ?? 0} label={percent(isOver ? 1 : data.fraction_done)} /> {percent(isOver ? 1 : data.fraction_done)}
        </span>
      </div>}
    </Panel>
  );
}

function ChangeDialog({ initial, node, onClose, onMade }: {
  initial: string;
  node?: ClusterNode;
  onClose: () => void;
  onMade: (change: Change, plan: NodePlan) => void;
}) {
  const isAdd = initial === "add";
  const [change, setChange] = useState<Change>({
    action: initial, nodes: [node?.name ?? "storage"], address: "", group: "", capacity: initial === "capacity" ? node?.capacity ?? "" : "", reason: "",
  });
  const [plan, setPlan] = useState<NodePlan>();
  const action = useAction();
  const edit = (part: Partial<Change>) => {
    setChange({ ...change, ...part });
    setPlan(undefined);
  };
  const send = (isPlan: boolean) => action.run(async () => {
    const made = await post<NodePlan>("/cluster/v1/nodes", { ...change, dry_run: isPlan });
    if (isPlan || !made.done) return setPlan(made);
    onMade(change, made);
  });
  const meaning = isAdd ? "Start the process first, with this address: the cluster then finds it." : kActions[change.action]!.meaning;
  return (
    <Dialog title={isAdd ? "Add a node" : `${node!.name}: ${kActions[initial]!.name}`} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        send(!plan || plan.refusals.length > 0);
      }}>
        <p>{meaning}</p>
        <div class="fields">
          {isAdd && <>
            <Select label="Role" value={change.nodes[0]!} options={["storage", "distributor"]} onChange={(role) => edit({ nodes: [role] })} />
            <Input label="Address" value={change.address} onInput={(address) => edit({ address })} placeholder="host:port" isRequired autoFocus />
            <Input label="Group" value={change.group} onInput={(group) => edit({ group })} hint="of the distribution tree; empty: none" />
          </>}
          {(isAdd || initial === "capacity") &&
            <Input label="Capacity" value={change.capacity} onInput={(capacity) => edit({ capacity })} placeholder="1" isRequired={!isAdd} />}
          <Input label="Reason, for the history" value={change.reason} onInput={(reason) => edit({ reason })} autoFocus={!isAdd} />
        </div>
        {plan && <Plan plan={plan} />}
        <Problem error={action.error} />
        {commandOf(change) && <Code label="The same on the command line" text={commandOf(change)} />}
        <div class="actions">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="main" disabled={action.isBusy}>{plan && plan.refusals.length === 0 ? "Do it" : "Show the plan"}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Returns the state, and the one that an operator wants if it is another: "retired (uid 0@host)" is no other one than "retired". */
export function stateText(node: Pick<ClusterNode, "state" | "wanted">): string {
  const [wanted] = node.wanted.split(" ", 1);
  return wanted && wanted !== node.state ? `${node.state}, wanted ${wanted}` : node.state;
}

/** Returns how far a retired storage node is. */
export function retiredText(node: Pick<ClusterNode, "buckets">): string {
  return node.buckets > 0 ? `${plural(node.buckets, "bucket")} still on it` : "empty: it may be removed";
}

function Versions({ node, status }: { node: ClusterNode; status: ClusterStatus }) {
  const behind = node.state_version < status.state_version || node.config_version < status.config_version;
  const title = "versions of the cluster state and of the live configuration that the node has applied";
  return <span class={behind ? "warned" : ""} title={behind ? `${title}; the cluster has newer ones` : title}>{node.state_version} / {node.config_version}</span>;
}

function actionsOf(node: ClusterNode): string[] {
  if (node.role !== "storage") return node.role === "distributor" ? ["maintenance", "up", "down", "remove"] : [];
  return node.state === "up" && !node.wanted ? ["maintenance", "retire", "down", "capacity"] : ["up", "maintenance", "retire", "remove", "capacity"];
}

function NodeDetails({ node, load, onChange }: { node: ClusterNode; load: NodeLoad | undefined; onChange: (action: string) => void }) {
  const facts: [string, string | false][] = [
    ["state", stateText(node)],
    ["wanted", node.wanted],
    ["reason", node.reason],
    ["slow", node.slow || (node.role === "storage" && "no")],
    ["space", node.space],
    ["disk stage", node.role === "storage" && node.space_stage > 0 && kStages[node.space_stage]!],
    ["address", node.address],
    ["versions applied", actionsOf(node).length > 0 && `cluster state ${node.state_version}, live configuration ${node.config_version}`],
    ["group", node.group],
    ["capacity", node.capacity],
    ["last answer", node.answered_seconds_ago === null ? "it never answered" : `${duration(node.answered_seconds_ago)} ago`],
    ["in maintenance", node.maintenance_seconds !== null && `${duration(node.maintenance_seconds)}${node.maintenance_seconds_left === null ? "" : `, ${duration(node.maintenance_seconds_left)} left`}`],
    ["processors in use", load?.cpus != null && `${percent(load.cpus)} of one`],
    ["memory", load?.resident_bytes != null && bytes(load.resident_bytes)],
    ["operations", load?.operations_per_second != null && rate(load.operations_per_second)],
    ["visitors", load?.visitors != null && count(load.visitors)],
  ];
  return (
    <Panel title={node.name} aside={<>
      {actionsOf(node).map((one) => <button key={one} type="button" onClick={() => onChange(one)}>{kActions[one]!.name}</button>)}
      <a class="button" href={href("nodes")}>Close</a>
    </>}>
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

const kRoles: Record<ClusterNode["role"], string> = {
  storage: "Storage nodes", distributor: "Distributors", fleetcontroller: "Fleet controllers", gateway: "Gateways",
};

function NodeTable({ status, loadOf, onChange }: {
  status: ClusterStatus;
  loadOf: (node: ClusterNode) => NodeLoad | undefined;
  onChange: (action: string, node: ClusterNode) => void;
}) {
  const section = (node: ClusterNode) => {
    const nodes = status.nodes.filter((one) => one.role === node.role);
    return `${kRoles[node.role]}: ${nodes.filter((one) => one.state === "up").length} of ${nodes.length} up`;
  };
  const order = Object.keys(kRoles);
  const rows = status.nodes.toSorted((a, b) => order.indexOf(a.role) - order.indexOf(b.role));
  const isMember = (node: ClusterNode) => node.role === "storage" || node.role === "distributor";
  const isStorage = (node: ClusterNode) => node.role === "storage";
  return (
    <Table label="Nodes" rows={rows} keyOf={(node) => node.name} sectionOf={section} onOpen={(node) => go("nodes", { node: node.name })} columns={[
      { name: "node", by: (node) => node.name, cell: (node) => <a href={href("nodes", { node: node.name })}>{node.name}</a> },
      { name: "state", isText: true, by: (node) => node.state, cell: (node) => <>
        <State tone={toneOf(node.state)}>{stateText(node)}</State>
        {isStorage(node) && node.state === "retired" && <div class="quiet">{retiredText(node)}</div>}
        {node.slow && <div><State tone="warn">slow</State> <span class="quiet">{node.slow}</span></div>}
        {(node.state !== "up" || !isMember(node)) && node.reason && <div class="quiet">{node.reason}</div>}
      </> },
      { name: "ops", isNumber: true, by: (node) => loadOf(node)?.operations_per_second, cell: (node) => rate(loadOf(node)?.operations_per_second) },
      { name: "p99", isNumber: true, by: (node) => loadOf(node)?.p99_seconds, cell: (node) => latency(loadOf(node)?.p99_seconds) },
      { name: "processor", isNumber: true, by: (node) => loadOf(node)?.cpus,
        cell: (node) => <span title="of one processor">{percent(loadOf(node)?.cpus)}</span> },
      { name: "memory", isNumber: true, isWideOnly: true, by: (node) => loadOf(node)?.resident_bytes, cell: (node) => bytes(loadOf(node)?.resident_bytes) },
      { name: "buckets", isNumber: true, isWideOnly: true, by: (node) => node.buckets, cell: (node) => isMember(node) ? count(node.buckets) : "" },
      { name: "documents", isNumber: true, by: (node) => node.documents, cell: (node) => isStorage(node) ? count(node.documents) : "" },
      { name: "bytes", isNumber: true, isWideOnly: true, by: (node) => node.bytes, cell: (node) => isStorage(node) ? bytes(node.bytes) : "" },
      { name: "disk", cell: (node) => isStorage(node) && disk(loadOf(node), node) },
      { name: "versions", isNumber: true, isWideOnly: true, cell: (node) => isMember(node) && <Versions node={node} status={status} /> },
      { name: "", cell: (node) => actionsOf(node).length > 0 && <select class="pick" aria-label={`Change ${node.name}`} value=""
        onChange={(event) => {
          onChange(event.currentTarget.value, node);
          event.currentTarget.value = "";
        }}>
        <option value="">Change…</option>
        {actionsOf(node).map((one) => <option key={one} value={one}>{kActions[one]!.name}</option>)}
      </select> },
    ]} />
  );
}

export function NodesPage({ parameters }: PageProps) {
  const status = usePoll<ClusterStatus>("/cluster/v1/status", kPeriod);
  const load = usePoll<Load>("/cluster/v1/load", kPeriod);
  const [dialog, setDialog] = useState<{ action: string; node?: ClusterNode }>();
  // The change that is followed is in the address, so that a reload and another person see it, too.
  const made = followedIn(parameters);
  const loadOf = (node: ClusterNode) => load.data?.nodes.find((one) => one.node === node.name);
  const selected = status.data?.nodes.find((node) => node.name === parameters.get("node"));
  return (
    <>
      <header><h1>Nodes</h1><div class="aside"><button type="button" onClick={() => setDialog({ action: "add" })}>Add a node</button></div></header>
      <Problem error={status.error} doing="The nodes" />
      {status.isLoading && <Loading />}
      {made && <Progress key={`${made.action} ${made.state_version}`} change={made} status={status} onClose={() => note("nodes", { node: parameters.get("node") ?? "" })} />}
      {selected && <NodeDetails node={selected} load={loadOf(selected)} onChange={(action) => setDialog({ action, node: selected })} />}
      {status.data && parameters.get("node") && !selected && <Panel><p>The cluster has no node {parameters.get("node")}.</p></Panel>}
      <Problem error={load.error} doing="Load" />
      {status.data && <>
        <Panel><NodeTable status={status.data} loadOf={loadOf} onChange={(action, node) => setDialog({ action, node })} /></Panel>
      </>}
      {dialog && <ChangeDialog initial={dialog.action} node={dialog.node} onClose={() => setDialog(undefined)} onMade={(change, plan) => {
        setDialog(undefined);
        note("nodes", { node: parameters.get("node") ?? "", action: change.action, changed: plan.nodes.join(","), state: String(plan.state_version) });
        status.reload();
      }} />}
    </>
  );
}
