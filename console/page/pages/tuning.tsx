// Advice on settings and on the places of buckets, with its reasons; applying it, and taking it back.

import { useState } from "preact/hooks";
import { get, post, query, usePoll } from "../lib/api";
import { bytes, command, duration, percent, plural, rate, short, time } from "../lib/format";
import type { Advice, AdviceRow, BalancePlan, BalancerStatus, BalanceStep, Move, TuningChange, TuningInput } from "../lib/types";
import { Bar, Code, Dialog, Input, Loading, Messages, Name, Panel, Problem, State, toneOf, useAction } from "../parts/basic";
import { Table } from "../parts/table";

const kPeriod = 5000;
const kSample = "10s";

/** The expected effect with its interval. */
function effectText(row: AdviceRow): string {
  return row.effect?.text || "–";
}

/** Returns a figure that advice is computed from: its value, and where that comes from. */
export function inputText(input: TuningInput): string {
  return `${input.name} = ${input.value === null ? "not known" : `${short(input.value)} ${input.unit}`.trim()} (${input.origin})`;
}

/** Why a setting is advised. */
export function Why({ row }: { row: AdviceRow }) {
  return (
    <details><summary>{row.reason}</summary>
      <dl class="facts">
        <dt>formula</dt><dd class="mono">{row.formula || "–"}</dd>
        <dt>with</dt><dd class="mono">{row.inputs.length === 0 ? "–" : row.inputs.map((input) => <div key={input.name}>{inputText(input)}</div>)}</dd>
        {row.binding.length > 0 && <><dt>bound by</dt><dd>{row.binding.join(", ")}</dd></>}
        {row.effect?.sensitive_to && <><dt>sensitive to</dt><dd>{row.effect.sensitive_to}</dd></>}
        <dt>source</dt><dd>{row.source}</dd>
      </dl>
    </details>
  );
}

function Apply({ rows, onClose, onDone }: { rows: AdviceRow[]; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const action = useAction();
  const values = Object.fromEntries(rows.map((row) => [row.name, row.new_text]));
  return (
    <Dialog title={`Apply ${plural(rows.length, "change")}`} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        action.run(async () => {
          await post("/cluster/v1/tuner/apply", { values, reason });
          onDone();
        });
      }}>
        <p>All of them are changed at once, on all nodes. The history below can take them back.</p>
        <ul class="messages">{rows.map((row) => <li key={row.name}>{row.name}: {row.old_text} → {row.new_text}</li>)}</ul>
        <div class="fields"><Input label="Reason, for the history" value={reason} onInput={setReason} isRequired autoFocus /></div>
        <Problem error={action.error} />
        <Code label="The same on the command line" text={command("fjord", "tune", "apply", "--reason", reason,
          ...rows.flatMap((row) => ["--set", `${row.name}=${row.new_text}`]))} />
        <div class="actions">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="main" disabled={action.isBusy}>Apply</button>
        </div>
      </form>
    </Dialog>
  );
}

function AdvicePanel({ onApplied }: { onApplied: () => void }) {
  const [advice, setAdvice] = useState<Advice>();
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [isApplying, setApplying] = useState(false);
  const action = useAction();
  const ask = () => action.run(async () => {
    const made = await get<Advice>(query("/cluster/v1/tuner/advice", { sample: kSample }));
    setAdvice(made);
    setChosen(new Set());
  });
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  const rows = advice?.advice ?? [];
  const applied = rows.filter((row) => chosen.has(row.name));
  return (
    <Panel title="Advice on settings" aside={<button type="button" class={advice ? "" : "main"} disabled={action.isBusy} onClick={ask}>
      {action.isBusy ? `Measuring for ${kSample}…` : advice ? "Measure again" : `Measure for ${kSample} and advise`}</button>}>
      <p class="quiet">A cost model computes them from what is asked of the cluster now, and from its disks and processors.</p>
      <Problem error={action.error} />
      {advice && <>
        <Messages of={advice.warnings} kind="warning" />
        <Table label="Advice" rows={rows} keyOf={(row) => row.name} empty="The settings fit: there is nothing to change." columns={[
          { name: "", cell: (row) => <input type="checkbox" aria-label={`Apply ${row.name}`} checked={chosen.has(row.name)}
            disabled={!row.may_be_applied} onChange={() => toggle(row.name)} /> },
          { name: "setting", cell: (row) => <><Name of={row.name} />{row.place !== "live" && <div class="quiet">in the {row.place === "file" ? "configuration file" : "job"}</div>}</> },
          { name: "now", isNumber: true, cell: (row) => row.old_text },
          { name: "advised", isNumber: true, cell: (row) => <b>{row.new_text}</b> },
          { name: "effect on the objective", isText: true, cell: (row) => effectText(row) },
          { name: "why", isText: true, cell: (row) => <Why row={row} /> },
          { name: "may be applied", cell: (row) => row.may_be_applied ? "yes" : row.why_not },
        ]} />
        {rows.length > 0 && <p class="row">
          <button type="button" class="main" disabled={applied.length === 0} onClick={() => setApplying(true)}>Apply {plural(applied.length, "change")}</button>
          {advice.moved_bytes > 0 && <span class="quiet">Each node then moves about {bytes(advice.moved_bytes)}, for {duration(advice.moved_seconds)}.</span>}
        </p>}
        <details><summary>What it is computed from</summary>
          <Table label="Inputs" rows={advice.inputs} keyOf={(row) => row.name} columns={[
            { name: "input", cell: (row) => <Name of={row.name} /> },
            { name: "value", isNumber: true, cell: (row) => `${short(row.value)} ${row.unit}` },
            { name: "from", cell: (row) => row.origin },
          ]} />
        </details>
        {advice.kept.length > 0 && <details><summary>{plural(advice.kept.length, "setting")} that stay as they are</summary>
          <Table label="Settings that stay" rows={advice.kept} keyOf={(row) => row.name} columns={[
            { name: "setting", cell: (row) => <Name of={row.name} /> },
            { name: "value", isNumber: true, cell: (row) => row.value_text },
            { name: "considered", isNumber: true, cell: (row) => row.considered_text },
            { name: "why", cell: (row) => row.why },
          ]} />
        </details>}
      </>}
      <Code label="The same on the command line" text="fjord tune plan" />
      {isApplying && <Apply rows={applied} onClose={() => setApplying(false)} onDone={() => {
        setApplying(false);
        setAdvice(undefined);
        onApplied();
      }} />}
    </Panel>
  );
}

function TuningHistory({ version }: { version: number }) {
  const history = usePoll<{ changes: TuningChange[] }>("/cluster/v1/tuner/history", kPeriod);
  const [asked, setAsked] = useState<TuningChange>();
  const action = useAction();
  return (
    <Panel title="Changes of the tuner" key={version}>
      <Problem error={history.error} />
      {history.isLoading && <Loading />}
      {history.data && <Table label="Changes of the tuner" rows={history.data.changes.toReversed()} keyOf={(one) => String(one.version)} empty="The tuner has changed nothing." columns={[
        { name: "time", cell: (one) => <span class="nowrap">{time(one.unix_us)}</span> },
        { name: "what changed", cell: (one) => <>{one.is_revert && <div>takes back <span class="mono">{one.id}</span></div>}<ul class="messages">{one.values.map((value) => <li key={value.name}>{value.name}: {value.before || "default"} → {value.after || "default"}</li>)}</ul></> },
        { name: "who", cell: (one) => one.who },
        { name: "id", cell: (one) => <span class="mono">{one.id}</span> },
        { name: "", cell: (one) => !one.is_revert && <button type="button" class="plain" onClick={() => setAsked(one)}>Take back</button> },
      ]} />}
      {asked && <Dialog title="Take the change back" onClose={() => setAsked(undefined)}>
        <p>The settings get the values from before:</p>
        <ul class="messages">{asked.values.map((value) => <li key={value.name}>{value.name}: {value.after || "default"} → {value.before || "default"}</li>)}</ul>
        <Problem error={action.error} />
        <Code label="The same on the command line" text={command("fjord", "tune", "revert", asked.id)} />
        <div class="actions">
          <button type="button" onClick={() => setAsked(undefined)}>Cancel</button>
          <button type="button" class="main" disabled={action.isBusy} onClick={() => action.run(async () => {
            await post("/cluster/v1/tuner/revert", { id: asked.id });
            setAsked(undefined);
            history.reload();
          })}>Take it back</button>
        </div>
      </Dialog>}
    </Panel>
  );
}

function Moves({ moves }: { moves: Move[] }) {
  return (
    <Table label="Moves" rows={moves} keyOf={(move) => `${move.bucket} ${move.from} ${move.to}`} empty="No bucket has to move." columns={[
      { name: "bucket", cell: (move) => <span class="mono">{move.bucket}</span> },
      { name: "from", cell: (move) => move.from },
      { name: "to", cell: (move) => move.to },
      { name: "load", isNumber: true, cell: (move) => short(move.load) },
      { name: "bytes", isNumber: true, cell: (move) => bytes(move.bytes) },
      { name: "why", cell: (move) => move.read_part ? `${percent(move.read_part)} of its reads; ${move.reason}` : move.reason },
    ]} />
  );
}

/** A plan of the balancer, and the button that carries it out. */
function PlanDialog({ title, plan, verb, mayBeEmpty, call, onClose, onDone }: {
  title: string;
  plan: BalancePlan;
  /** It has an effect without moves, too: parts of reads go back. */
  mayBeEmpty?: boolean;
  verb: string;
  call: (reason: string) => Promise<{ refusals: string[] }>;
  onClose: () => void;
  onDone: () => void;
}) {
  const [reason, setReason] = useState("");
  const [refusals, setRefusals] = useState(plan.refusals);
  const action = useAction();
  return (
    <Dialog isWide title={title} onClose={onClose}>
      {plan.moves.length > 0 && <p>{plural(plan.moves.length, "move")}, {bytes(plan.bytes)}, about {duration(plan.duration_seconds)}.
        {plan.imbalance_before > 0 && <> The hottest node has {short(plan.imbalance_before)} times the mean load now,
        and {short(plan.imbalance_after)} times then.</>}</p>}
      <Messages of={refusals} kind="problem" />
      {plan.refusals.length === 0 && <Moves moves={plan.moves} />}
      <Messages of={plan.notes} kind="note" />
      <div class="fields"><Input label="Reason, for the history" value={reason} onInput={setReason} autoFocus /></div>
      <Problem error={action.error} />
      <div class="actions">
        <button type="button" onClick={onClose}>Cancel</button>
        <button type="button" class="main" disabled={action.isBusy || (plan.moves.length === 0 && !mayBeEmpty) || plan.refusals.length > 0} onClick={() => action.run(async () => {
          const done = await call(reason);
          if (done.refusals.length > 0) return setRefusals(done.refusals);
          onDone();
        })}>{verb}</button>
      </div>
    </Dialog>
  );
}

/** A load with its unit: operations, or a share of the processors. */
export function loadText(load: number, unit: BalancerStatus["unit"]): string {
  return unit === "processor_share" ? percent(load) : `${short(load)} operations/s`;
}

function Balancer() {
  const status = usePoll<BalancerStatus>("/cluster/v1/balancer/status", kPeriod);
  const history = usePoll<{ steps: BalanceStep[] }>("/cluster/v1/balancer/history", kPeriod);
  const [plan, setPlan] = useState<BalancePlan>();
  const [revert, setRevert] = useState<{ step: number; plan: BalancePlan }>();
  const action = useAction();
  const data = status.data;
  const most = Math.max(...(data?.nodes ?? []).map((node) => node.load), Number.MIN_VALUE);
  const done = () => {
    setPlan(undefined);
    setRevert(undefined);
    status.reload();
    history.reload();
  };
  return (
    <Panel title="Balancing by load" aside={data && <>
      <State tone={toneOf(data.mode)}>{data.mode}</State>
      <button type="button" disabled={action.isBusy || data.mode === "off"} onClick={() => action.run(async () => setPlan(await get<BalancePlan>("/cluster/v1/balancer/plan")))}>Plan a step</button>
    </>}>
      <Problem error={status.error} />
      {status.isLoading && <Loading />}
      <Problem error={action.error} />
      {data && <>
        <p class="quiet">
          {data.mode === "off" ? "It is off: the live setting balancer.mode turns it on. " : ""}
          {data.imbalance === null ? "The loads are not known yet." : `The hottest node has ${short(data.imbalance)} times the mean load. `}
          {data.doing && `Now: ${data.doing}`}{data.round_age_seconds !== null && `, measured ${duration(data.round_age_seconds)} ago`}
          {data.moves_seconds_left > 0 && `, moves take ${duration(data.moves_seconds_left)} more`}
        </p>
        <Messages of={data.waits_for} kind="warning" />
        <Table label="Load of the nodes" rows={data.nodes} keyOf={(node) => node.node} empty="No loads are known." columns={[
          { name: "node", cell: (node) => node.node },
          { name: "load now", isNumber: true, by: (node) => node.load, cell: (node) => loadText(node.load, data.unit) },
          { name: "", cell: (node) => <Bar share={node.load / most} label={`load ${loadText(node.load, data.unit)}`} /> },
          { name: "of the mean, smoothed", isNumber: true, cell: (node) => node.over_mean ? percent(node.over_mean) : "–" },
          { name: "reads", isNumber: true, cell: (node) => rate(node.reads_per_s) },
          { name: "writes", isNumber: true, cell: (node) => rate(node.writes_per_s) },
          { name: "bytes", isNumber: true, cell: (node) => bytes(node.bytes) },
          { name: "note", cell: (node) => node.note },
        ]} />
      </>}
      <h3>Steps</h3>
      <Problem error={history.error} />
      {history.data && <Table label="Steps of the balancer" rows={history.data.steps.toReversed()} keyOf={(step) => String(step.step)} empty="Nothing was moved." columns={[
        { name: "step", isNumber: true, cell: (step) => step.step },
        { name: "time", cell: (step) => <span class="nowrap">{time(step.unix_us)}</span> },
        { name: "what", cell: (step) => step.reverts ? `takes back step ${step.reverts}` : `${plural(step.moves.length, "move")} (${step.kind})` },
        { name: "bytes", isNumber: true, cell: (step) => bytes(step.bytes) },
        { name: "imbalance", isNumber: true, cell: (step) => step.imbalance_before === null ? "–" : `${short(step.imbalance_before)} → ${short(step.imbalance_after)}` },
        { name: "why", cell: (step) => `${step.why}${step.who ? ` (${step.who})` : ""}` },
        { name: "", cell: (step) => <button type="button" class="plain" disabled={action.isBusy} onClick={() => action.run(async () =>
          setRevert({ step: step.step, plan: await post<BalancePlan>("/cluster/v1/balancer/revert", { step: step.step, dry_run: true }) }))}>Take back</button> },
      ]} />}
      <Code label="The same on the command line" text="fjord balance status" />
      {plan && <PlanDialog title="A step of the balancer" verb="Move them" plan={plan} onClose={() => setPlan(undefined)} onDone={done}
        call={(reason) => post("/cluster/v1/balancer/apply", { state_version: plan.state_version, reason,
          moves: plan.moves.map(({ bucket, from, to, read_part }) => ({ bucket, from, to, read_part })) })} />}
      {revert && <PlanDialog title={`Take back step ${revert.step}`} mayBeEmpty verb="Take it back" plan={revert.plan} onClose={() => setRevert(undefined)} onDone={done}
        call={(reason) => post("/cluster/v1/balancer/revert", { step: revert.step, dry_run: false, reason })} />}
    </Panel>
  );
}

export function TuningPage() {
  const [version, setVersion] = useState(0);
  return (
    <>
      <header><h1>Tuning</h1></header>
      <AdvicePanel onApplied={() => setVersion(version + 1)} />
      <TuningHistory version={version} />
      <Balancer />
    </>
  );
}

