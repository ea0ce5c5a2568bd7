// The live settings: value, bounds, default, history.

import { useEffect, useState } from "preact/hooks";
import { post, usePoll } from "../lib/api";
import { command, count, plural, time } from "../lib/format";
import { go, href, note, recordOf } from "../lib/route";
import type { Setting, Settings, SettingsChange, SettingsVersion } from "../lib/types";
import { Code, Dialog, Empty, Input, Loading, Messages, Name, Panel, Problem, Select, useAction } from "../parts/basic";
import { Table } from "../parts/table";
import type { PageProps } from "../parts/page";

const kPeriod = 5000;
/** In place of a version: the settings before the last change, whatever version that was. */
const kBeforeLast = 0;

function choicesOf(setting: Setting): string[] | undefined {
  if (setting.type === "bool") return ["true", "false"];
  return setting.type.includes("|") ? setting.type.split("|") : undefined;
}

function boundsOf(setting: Setting): string {
  if (choicesOf(setting)) return choicesOf(setting)!.join(", ");
  return setting.min || setting.max ? `${setting.min} – ${setting.max}` : "any";
}

/** Changes one setting: first says what would change, then does it. */
function Change({ setting, version, onClose, onDone }: { setting: Setting; version: number; onClose: () => void; onDone: () => void }) {
  const [value, setValue] = useState(setting.live_value || setting.value);
  const [reason, setReason] = useState("");
  const [plan, setPlan] = useState<SettingsChange>();
  const action = useAction();
  const choices = choicesOf(setting);
  const edit = (next: (text: string) => void) => (text: string) => {
    next(text);
    setPlan(undefined);
  };
  // The value that the plan is of; empty: the default.
  const [planned, setPlanned] = useState("");
  const change = (to: string, isPlan: boolean) => action.run(async () => {
    const made = await post<SettingsChange>("/cluster/v1/settings",
      { values: { [setting.name]: to }, reason, dry_run: isPlan, ...(isPlan ? {} : { if_version: version }) });
    if (!isPlan) return onDone();
    setPlan(made);
    setPlanned(to);
  });
  const because = reason ? ["--reason", reason] : [];
  return (
    <Dialog title={setting.name} onClose={onClose}>
      <p>{setting.meaning}</p>
      <dl class="facts">
        <dt>type</dt><dd>{setting.type}</dd>
        <dt>bounds</dt><dd>{boundsOf(setting)}</dd>
        <dt>default</dt><dd>{setting.default || "from the configuration file, or as the machine is"}</dd>
        <dt>in force</dt><dd>{setting.value} ({setting.source})</dd>
        <dt>used by</dt><dd>{setting.used_by}</dd>
      </dl>
      <Messages of={setting.elsewhere} kind="warning" />
      <form onSubmit={(event) => {
        event.preventDefault();
        change(plan ? planned : value, !plan);
      }}>
        <div class="fields">
          {choices
            ? <Select label="New value" value={value} options={choices} onChange={edit(setValue)} />
            : <Input label="New value" value={value} onInput={edit(setValue)} isRequired autoFocus />}
          <Input label="Reason, for the history" value={reason} onInput={setReason} />
        </div>
        {plan && (plan.changes.length === 0 ? <p>Nothing would change.</p> : <>
          <p>This changes on all nodes, at once:</p><Messages of={plan.changes} kind="note" /></>)}
        <Problem error={action.error} />
        <Code label="The same on the command line" text={plan && !planned
          ? command("fjord", "config", "unset", setting.name, ...because) : command("fjord", "config", "set", `${setting.name}=${value}`, ...because)} />
        <div class="actions">
          {setting.live_value && <button type="button" disabled={action.isBusy} onClick={() => change("", true)}>Restore the default</button>}
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="main" disabled={action.isBusy || plan?.changes.length === 0}>{plan ? "Change it" : "Show what changes"}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Returns the differences between two versions as lines. */
function differences(before: Record<string, string>, after: Record<string, string>): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.filter((name) => before[name] !== after[name])
    .map((name) => `${name}: ${before[name] ?? "default"} → ${after[name] ?? "default"}`);
}

/** `version`: of the settings that the page shows. The history is read again when it changes. */
function History({ version, onDone }: { version: number; onDone: () => void }) {
  const history = usePoll<{ versions: SettingsVersion[] }>("/cluster/v1/settings/history", kPeriod);
  useEffect(() => history.reload(), [version]);
  const [revert, setRevert] = useState<{ to: number; plan: SettingsChange }>();
  const action = useAction();
  const versions = history.data?.versions ?? [];
  const rows = versions.map((version, at) => ({ ...version, lines: differences(versions[at - 1]?.values ?? {}, version.values) })).toReversed();
  const ask = (to: number, isPlan: boolean) => action.run(async () => {
    const plan = await post<SettingsChange>("/cluster/v1/settings/revert", { to_version: to, dry_run: isPlan });
    if (isPlan) return setRevert({ to, plan });
    setRevert(undefined);
    history.reload();
    onDone();
  });
  return (
    <Panel title="History">
      <Problem error={history.error ?? (revert ? undefined : action.error)} />
      {history.isLoading && <Loading />}
      {history.data && <Table label="History of the live settings" rows={rows} keyOf={(row) => String(row.version)} empty="Nothing was changed yet." columns={[
        { name: "version", isNumber: true, cell: (row) => count(row.version) },
        { name: "time", cell: (row) => <span class="nowrap">{time(row.unix_us)}</span> },
        { name: "what changed", isText: true, cell: (row) => row.lines.length === 0 ? <span class="quiet">nothing</span>
          : <ul class="messages">{row.lines.map((line) => <li key={line}>{line}</li>)}</ul> },
        { name: "why", isText: true, cell: (row) => row.why },
        { name: "who", cell: (row) => row.who },
        { name: "", cell: (row) => row === rows[0]
          ? <button type="button" class="plain" disabled={action.isBusy} onClick={() => ask(kBeforeLast, true)}>Take back</button>
          : <button type="button" class="plain" disabled={action.isBusy} onClick={() => ask(row.version, true)}>Restore</button> },
      ]} />}
      {revert && <Dialog title={revert.to === kBeforeLast ? "Take the last change back" : `Restore version ${revert.to}`} onClose={() => setRevert(undefined)}>
        {revert.plan.changes.length === 0 ? <p>Nothing would change.</p> : <>
          <p>This changes on all nodes, at once:</p><Messages of={revert.plan.changes} kind="note" /></>}
        <Problem error={action.error} />
        <div class="actions">
          <button type="button" onClick={() => setRevert(undefined)}>Cancel</button>
          <button type="button" class="main" disabled={action.isBusy || revert.plan.changes.length === 0} onClick={() => ask(revert.to, false)}>Restore</button>
        </div>
      </Dialog>}
    </Panel>
  );
}

export function SettingsPage({ parameters }: PageProps) {
  const filter = parameters.get("with") ?? "";
  const onlyChanged = parameters.get("only") === "changed";
  const show = (change: Record<string, string>) => note("settings", { ...recordOf(parameters), ...change });
  const settings = usePoll<Settings>("/cluster/v1/settings", kPeriod);
  const words = filter.toLowerCase();
  const rows = (settings.data?.settings ?? []).filter((one) =>
    (!onlyChanged || one.source !== "built in" || one.elsewhere.length > 0) && `${one.name} ${one.meaning}`.toLowerCase().includes(words));
  const open = settings.data?.settings.find((one) => one.name === parameters.get("setting"));
  // In place of the address of the dialog, so that the button "back" does not open it again.
  const close = () => show({ setting: "" });
  return (
    <>
      <header><h1>Live settings</h1>{settings.data && <span class="quiet">version {settings.data.version} of the live configuration</span>}</header>
      <Problem error={settings.error} doing="The settings" />
      {settings.isLoading && <Loading />}
      {settings.data && <>
        <Messages kind="problem" of={settings.data.errors} />
        {settings.data.waiting.length > 0 && <div class="warned">Not applied yet by {settings.data.waiting.join(", ")}.</div>}
        <Panel title={plural(rows.length, "setting")} aside={
          <label class="check"><input type="checkbox" checked={onlyChanged} onChange={(event) => show({ only: event.currentTarget.checked ? "changed" : "" })} />only those that are not built in</label>}>
          <div class="fields"><Input label="Only settings with" value={filter} onInput={(text) => show({ with: text })} placeholder="visitors" /></div>
          <Table label="Live settings" rows={rows} keyOf={(row) => row.name} empty="No setting has these words."
            onOpen={(row) => go("settings", { ...recordOf(parameters), setting: row.name })} columns={[
              { name: "name", by: (row) => row.name, cell: (row) => <a href={href("settings", { ...recordOf(parameters), setting: row.name })}><Name of={row.name} /></a> },
              { name: "in force", isNumber: true, cell: (row) => <>
                <b>{row.value}</b>{row.elsewhere.length > 0 && <div class="quiet">other on {plural(row.elsewhere.length, "node")}</div>}</> },
              { name: "from", isWideOnly: true, cell: (row) => row.source },
              { name: "default", isNumber: true, cell: (row) => row.default || <span class="quiet">as the machine is</span> },
              { name: "bounds", cell: (row) => choicesOf(row) ? <span class="clip narrow" title={boundsOf(row)}>{boundsOf(row)}</span> : <span class="nowrap">{boundsOf(row)}</span> },
              { name: "meaning", isText: true, cell: (row) => row.meaning },
            ]} />
        </Panel>
        {open && <Change key={open.name} setting={open} version={settings.data.version} onClose={close} onDone={() => {
          settings.reload();
          close();
        }} />}
        {parameters.get("setting") && !open && <Empty>There is no live setting {parameters.get("setting")}.</Empty>}
      </>}
      <History version={settings.data?.version ?? 0} onDone={settings.reload} />
    </>
  );
}
