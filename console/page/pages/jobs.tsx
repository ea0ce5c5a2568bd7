// Jobs: how far they are, what bounds them, and what can be done about it.

import { useState } from "preact/hooks";
import { post, send, useEvents, usePoll } from "../lib/api";
import { ago, bytes, command, count, duration, percent, plural, text, time } from "../lib/format";
import { csvOf, download } from "../lib/download";
import { isNumber, writeJson } from "../lib/json";
import { formAgain } from "../lib/jobrequest";
import { go, href, note, recordOf } from "../lib/route";
import type { DeadLetter, Job, JobPass, JobResult } from "../lib/types";
import { Bar, Code, Dialog, Figure, Input, Loading, Panel, Problem, State, toneOf, useAction } from "../parts/basic";
import { Table } from "../parts/table";
import { boundBy, hasEnded, jobName, JobProgress, JobState } from "../parts/job";
import { JobFormPanel } from "../parts/jobform";
import type { PageProps } from "../parts/page";

const kPeriod = 2000;
const kResults = 1000;

const pathOf = (job: string, part = "") => `/jobs/v1/${encodeURIComponent(job)}${part}`;

/** Settings that can be changed while a job runs. */
function SettingsDialog({ job, onClose, onDone }: { job: Job; onClose: () => void; onDone: () => void }) {
  const [throttle, setThrottle] = useState(job.settings.throttle ?? "");
  const [weight, setWeight] = useState(job.settings.weight ?? "");
  const [visitors, setVisitors] = useState(job.settings.visitors_per_node ?? "");
  const action = useAction();
  const all = { throttle, weight, visitors_per_node: visitors };
  const changed = Object.fromEntries(Object.entries(all).filter(([name, value]) => value !== (job.settings[name] ?? "")));
  return (
    <Dialog title={`Throttle ${job.job}`} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        action.run(async () => {
          await post(pathOf(job.job, "/settings"), { settings: changed });
          onDone();
        });
      }}>
        <div class="fields">
          <Input label="Throttle" value={throttle} onInput={setThrottle} placeholder="2MB" hint="bytes a second of all tasks together" autoFocus />
          <Input label="Weight" value={weight} onInput={setWeight} placeholder="10" hint="share of the storage nodes' time, 1 to 1000" />
          <Input label="Visitors on each node" value={visitors} onInput={setVisitors} placeholder="by memory" hint="tasks at once" />
        </div>
        <Problem error={action.error} />
        <Code label="The same on the command line" text={command("fjord", "job", "set", job.job, ...Object.entries(changed).map(([name, value]) => `${name}=${value}`))} />
        <div class="actions">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="main" disabled={action.isBusy || Object.keys(changed).length === 0}>Change</button>
        </div>
      </form>
    </Dialog>
  );
}

function Confirm({ title, what, verb, call, onClose, onDone }: {
  title: string;
  what: string;
  verb: string;
  call: () => Promise<unknown>;
  onClose: () => void;
  onDone: () => void;
}) {
  const action = useAction();
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{what}</p>
      <Problem error={action.error} />
      <div class="actions">
        <button type="button" autoFocus onClick={onClose}>Back</button>
        <button type="button" class="danger" disabled={action.isBusy} onClick={() => action.run(async () => {
          await call();
          onDone();
        })}>{verb}</button>
      </div>
    </Dialog>
  );
}

function Controls({ job, reload }: { job: Job; reload: () => void }) {
  const action = useAction();
  const [dialog, setDialog] = useState<"" | "settings" | "cancel" | "remove">("");
  const close = () => setDialog("");
  const done = () => {
    close();
    reload();
  };
  const call = (verb: string) => action.run(async () => {
    await post(pathOf(job.job, `/${verb}`));
    reload();
  });
  return (
    <>
      <div class="row">
        {!hasEnded(job) && <>
          {job.state === "paused"
            ? <button type="button" disabled={action.isBusy} onClick={() => call("resume")}>Resume</button>
            : <button type="button" disabled={action.isBusy} onClick={() => call("pause")}>Pause</button>}
          <button type="button" onClick={() => setDialog("settings")}>Throttle</button>
          <button type="button" class="danger" onClick={() => setDialog("cancel")}>Cancel the job</button>
        </>}
        {formAgain(job) && <a class="button" href={href("jobs", { new: "job", again: job.job })}>Run again</a>}
        {hasEnded(job) && <button type="button" class="danger" onClick={() => setDialog("remove")}>Remove</button>}
        <a class="button" href={href("jobs")}>Close</a>
      </div>
      <Problem error={action.error} />
      {dialog === "settings" && <SettingsDialog job={job} onClose={close} onDone={done} />}
      {dialog === "cancel" && <Confirm title="Cancel the job" verb="Cancel the job" what={`Cancel ${job.job}? What it has computed is lost.`}
        call={() => post(pathOf(job.job, "/cancel"))} onClose={close} onDone={done} />}
      {dialog === "remove" && <Confirm title="Remove the job" verb="Remove" what={`Remove ${job.job} from the list, with its results?`}
        call={() => send("DELETE", pathOf(job.job))} onClose={close} onDone={() => {
          close();
          go("jobs");
        }} />}
    </>
  );
}

function tasks(done: number, all: number) {
  return all === 0 ? "–" : <span class="nowrap"><Bar share={done / all} label={percent(done / all)} /> {count(done)} of {count(all)}</span>;
}

/** What a pass was started with: its parameters, and a script as text. */
function PassInput({ pass }: { pass: JobPass }) {
  const { script, ...parameters } = pass.parameters;
  const rows = Object.entries(parameters);
  return (
    <>
      {rows.length > 0 && <dl class="facts">{rows.map(([name, value]) => <><dt class="mono">{name}</dt><dd class="mono">{value}</dd></>)}</dl>}
      {script && <Code label="Script" text={script} />}
    </>
  );
}

function Passes({ passes }: { passes: JobPass[] }) {
  return (
    <Table label="Passes" rows={passes} keyOf={(_, at) => String(at)} columns={[
      { name: "pass", isNumber: true, cell: (pass) => passes.indexOf(pass) + 1 },
      { name: "state", cell: (pass) => <State tone={toneOf(pass.state)}>{pass.state}</State> },
      { name: "does", cell: (pass) => `${pass.application} on ${pass.type || "rows"}` },
      { name: "map", cell: (pass) => tasks(pass.map_tasks_done, pass.map_tasks) },
      { name: "reduce", cell: (pass) => tasks(pass.reduce_tasks_done, pass.reduce_tasks) },
      { name: "documents", isNumber: true, cell: (pass) => count(pass.documents_read) },
      { name: "read", isNumber: true, cell: (pass) => bytes(pass.bytes_read) },
      { name: "sent", isNumber: true, cell: (pass) => bytes(pass.sent_bytes) },
      { name: "spilled", isNumber: true, cell: (pass) => bytes(pass.spilled_bytes) },
      { name: "repeated tasks", isNumber: true, cell: (pass) => count(pass.tasks_repeated) },
      { name: "results", isNumber: true, cell: (pass) => count(pass.results) },
    ]} />
  );
}

function Results({ job }: { job: Job }) {
  const [isWanted, setWanted] = useState(false);
  const results = usePoll<{ results: JobResult[] }>(isWanted ? pathOf(job.job, "/results") : "");
  const rows = results.data?.results ?? [];
  if (job.state !== "done") return null;
  const until = job.results_removed ? "They were removed." : job.results_until_unix_us ? `They are kept until ${time(job.results_until_unix_us)}.` : "";
  return (
    <Panel title="Results" aside={<>
      {!isWanted && !job.results_removed && <button type="button" onClick={() => setWanted(true)}>Show</button>}
      {results.data && <>
        <button type="button" onClick={() => download(`${job.job}.csv`, "text/csv", csvOf({ columns: ["key", "value"], rows: rows.map((row) => [row.key, row.value]) }))}>Download CSV</button>
        <button type="button" onClick={() => download(`${job.job}.json`, "application/json", writeJson(rows, 2))}>Download JSON</button>
      </>}
    </>}>
      <p class="quiet">{until}</p>
      {results.isLoading && <Loading />}
      <Problem error={results.error} />
      {results.data && <>
        {rows.length > kResults && <p>The first {count(kResults)} of {count(rows.length)}:</p>}
        <Table label="Results" rows={rows.slice(0, kResults)} keyOf={(row) => row.key} empty="The job has no results." columns={[
          { name: "key", by: (row) => row.key, cell: (row) => <span class="wrap">{row.key}</span> },
          { name: "value", by: (row) => isNumber(row.value) ? row.value : text(row.value), cell: (row) => <span class="wrap mono">{text(row.value)}</span> },
        ]} />
      </>}
      <Code label="The same on the command line" text={command("fjord", "job", "results", job.job)} />
    </Panel>
  );
}

function DeadLetters({ job }: { job: Job }) {
  const letters = usePoll<{ dead_letters: DeadLetter[] }>(job.dead_letters > 0 ? pathOf(job.job, "/dead_letters") : "");
  if (job.dead_letters === 0) return null;
  return (
    <Panel title={plural(job.dead_letters, "dead letter")}>
      <p class="quiet">Documents that the map function failed on. Nothing of them is in the results.</p>
      <Problem error={letters.error} />
      {letters.data && <Table label="Dead letters" rows={letters.data.dead_letters} keyOf={(one) => one.document} columns={[
        { name: "document", cell: (one) => <a href={href("data", { id: one.document })} class="wrap">{one.document}</a> },
        { name: "error", cell: (one) => <span class="wrap">{one.error}</span> },
      ]} />}
    </Panel>
  );
}

function Details({ id, onChanged }: { id: string; onChanged: () => void }) {
  const first = usePoll<Job>(pathOf(id));
  const isLive = first.data !== undefined && !hasEnded(first.data);
  const events = useEvents<Job>(isLive ? pathOf(id, "/events") : "");
  const job = events.data ?? first.data;
  if (!job) return <><Problem error={first.error} doing={id} />{first.isLoading && <Loading />}</>;
  const left = job.seconds_left === null ? "no estimate yet"
    : `about ${duration(job.seconds_left)}${job.seconds_left_error ? ` ± ${duration(job.seconds_left_error)}` : ""} in this phase`;
  const settings = Object.entries(job.settings).map(([name, value]) => `${name}=${value}`).join(", ");
  return (
    <>
      <Panel title={jobName(job)} aside={<Controls job={job} reload={() => {
        first.reload();
        onChanged();
      }} />}>
        <div class="headline" aria-live="polite"><JobState job={job} />
          {!hasEnded(job) && <span>{job.phase}, {left}{boundBy(job) && <>; bound by <b>{boundBy(job)}</b></>}</span>}</div>
        {job.error && (job.state === "cancelled" ? <p class="quiet">{job.error.message}</p> : <Problem error={new Error(job.error.message)} />)}
        <p class="row"><Bar share={job.fraction_done} label={percent(job.fraction_done)} /> {percent(job.fraction_done)}</p>
        <div class="figures">
          <Figure name="documents read" value={count(job.documents_read)} />
          <Figure name="dead letters" value={count(job.dead_letters)} />
          <Figure name="time of its tasks" value={duration(job.busy_seconds)} />
        </div>
        <dl class="facts">
          <dt>id</dt><dd class="mono">{job.job}</dd>
          <dt>owner</dt><dd>{job.owner}{!job.live && ", which does not answer: figures from the record of the job"}
            {job.taken_over > 0 && `; taken over ${plural(job.taken_over, "time")}`}</dd>
          <dt>submitted</dt><dd>{time(job.submitted_unix_us)}</dd>
          {job.finished_unix_us > 0 && <><dt>ended</dt><dd>{time(job.finished_unix_us)}, after {duration((job.finished_unix_us - job.submitted_unix_us) / 1e6)}</dd></>}
          {settings && <><dt>settings</dt><dd>{settings}</dd></>}
          {job.passes[0]?.selection && <><dt>selection</dt><dd class="mono">{job.passes[0].selection}</dd></>}
        </dl>
        {job.passes.map((pass, at) => <PassInput key={at} pass={pass} />)}
        <Passes passes={job.passes} />
        <Code label="The same on the command line" text={command("fjord", "job", "watch", job.job)} />
      </Panel>
      <DeadLetters job={job} />
      <Results job={job} />
    </>
  );
}

export function JobsPage({ parameters }: PageProps) {
  const jobs = usePoll<{ jobs: Job[] }>("/jobs/v1", kPeriod);
  const id = parameters.get("job") ?? "";
  const filter = parameters.get("with") ?? "";
  const words = filter.toLowerCase();
  const rows = (jobs.data?.jobs ?? []).toReversed().filter((job) => `${job.job} ${jobName(job)} ${job.state}`.toLowerCase().includes(words));
  const now = Date.now();
  return (
    <>
      <header><h1>Jobs</h1><div class="aside"><a class="button" href={href("jobs", { new: "job" })}>New job</a></div></header>
      {parameters.has("new") && <JobFormPanel key={parameters.get("again") ?? ""} again={parameters.get("again") ?? ""} />}
      {id && <Details key={id} id={id} onChanged={jobs.reload} />}
      <Panel title={plural(rows.length, "job")}>
        <div class="fields"><Input label="Only jobs with" value={filter} onInput={(text) => note("jobs", { ...recordOf(parameters), with: text })} placeholder="failed" /></div>
        <Problem error={jobs.error} />
        {jobs.isLoading && <Loading />}
        {jobs.data && <Table label="Jobs" rows={rows} keyOf={(job) => job.job} empty="There are no such jobs."
          onOpen={(job) => go("jobs", { with: filter, job: job.job })} columns={[
            { name: "job", by: jobName, cell: (job) => <a href={href("jobs", { job: job.job })}>{jobName(job)}</a> },
            { name: "state", by: (job) => job.state, cell: (job) => <JobState job={job} /> },
            { name: "done", cell: (job) => <JobProgress job={job} /> },
            { name: "bound by", cell: (job) => <span class="nowrap boundby">{boundBy(job)}</span> },
            { name: "documents", isNumber: true, by: (job) => job.documents_read, cell: (job) => count(job.documents_read) },
            { name: "dead letters", isNumber: true, by: (job) => job.dead_letters, cell: (job) => count(job.dead_letters) },
            { name: "submitted", isNumber: true, by: (job) => job.submitted_unix_us, cell: (job) => <span title={time(job.submitted_unix_us)}>{ago(job.submitted_unix_us, now)}</span> },
            { name: "took", isNumber: true, by: (job) => job.finished_unix_us ? job.finished_unix_us - job.submitted_unix_us : null, cell: (job) => job.finished_unix_us ? duration((job.finished_unix_us - job.submitted_unix_us) / 1e6) : "" },
            { name: "id", isWideOnly: true, cell: (job) => <span class="mono">{job.job}</span> },
          ]} />}
      </Panel>
    </>
  );
}
