// The form that starts a job: an application, a Lua script, or an aggregation whose rows become documents.

import { useState } from "preact/hooks";
import { post, usePoll } from "../lib/api";
import { formAgain, jobCommandOf, jobRequestOf, kJobKinds, type JobForm, type JobKind } from "../lib/jobrequest";
import { writeJson } from "../lib/json";
import { go, href } from "../lib/route";
import type { DocumentType, Job } from "../lib/types";
import { Begin } from "./begin";
import { Code, Input, Loading, Panel, Problem, Select, TextArea, Tabs, useAction } from "./basic";

const kBuiltIn = ["fieldstats", "citycount", "noop"];
const kNumber = /^(int|long|byte|float|double)$/;

/** Returns a script that counts the documents of a type by a field. */
function exampleOf(field: string): string {
  return `function map(document, emit)
  emit(document.fields.${field}, 1)
end

function reduce(key, values)
  return {count = #values}
end`;
}

const kMeanings: Record<JobKind, string> = {
  application: "A program that is built in or that a plugin brings. It has results, which are kept for a while.",
  script: "A program in Lua: map(document, emit) runs next to the documents, reduce(key, values) once for each key.",
  aggregation: "Each row becomes a document of a type that has a field for each column. The next run with the same name replaces them.",
};

/** The texts that the form sends. Instead of them, what is wrong with the form. */
function textsOf(form: JobForm): { commandLine: string; request: string; error?: Error } {
  try {
    return { commandLine: jobCommandOf(form), request: writeJson(jobRequestOf(form)) };
  } catch (error) {
    return { commandLine: "", request: "", error: error as Error };
  }
}

function ApplicationFields({ form, edit }: { form: JobForm; edit: (part: Partial<JobForm>) => void }) {
  return (
    <div class="fields">
      <Input label="Application" value={form.application} onInput={(application) => edit({ application })} list={kBuiltIn} isRequired />
      <TextArea label="Parameters" value={form.parameters} onInput={(parameters) => edit({ parameters })} rows={3}
        placeholder={"group=city\nvalue=price"} hint="one name=value a line" />
    </div>
  );
}

function AggregationFields({ form, types, fields, edit }: {
  form: JobForm;
  types: string[];
  fields: string[];
  edit: (part: Partial<JobForm>) => void;
}) {
  return (
    <div class="fields">
      <Input label="Group by" value={form.groupBy} onInput={(groupBy) => edit({ groupBy })} list={fields} placeholder={fields[0] ?? "city"}
        hint="expressions, with commas between" />
      <Input label="Compute" value={form.aggregates} onInput={(aggregates) => edit({ aggregates })} isRequired placeholder="count() as n" />
      <Input label="Only rows with" value={form.having} onInput={(having) => edit({ having })} placeholder="n > 5" />
      <Select label="Into type" value={form.into} options={types} onChange={(into) => edit({ into })} />
      <Input label="Namespace of these documents" value={form.intoNamespace} onInput={(intoNamespace) => edit({ intoNamespace })} placeholder="results" />
      <Input label="Name of this run" value={form.name} onInput={(name) => edit({ name })} placeholder="from the request" hint="a part of their ids" />
    </div>
  );
}

function Form({ types, first }: { types: DocumentType[]; first: Partial<JobForm> }) {
  const [given, setGiven] = useState<Partial<JobForm>>(first);
  const action = useAction();
  const type = types.find((one) => one.name === given.type) ?? types[0]!;
  const fields = type.fields.map((field) => field.name);
  const number = type.fields.find((field) => kNumber.test(field.type))?.name ?? fields[0] ?? "";
  const form: JobForm = {
    kind: "application", selection: "", throttle: "", application: "fieldstats", parameters: `group=${fields[0] ?? ""}\nvalue=${number}`,
    script: exampleOf(fields[0] ?? ""), groupBy: "", aggregates: "count() as n", having: "", into: types[0]!.name, intoNamespace: "", name: "",
    ...given, type: type.name,
  };
  const edit = (part: Partial<JobForm>) => {
    action.clear();
    setGiven({ ...given, ...part });
  };
  const { commandLine, request, error } = textsOf(form);
  const kinds = Object.values(kJobKinds);
  return (
    <form onSubmit={(event) => {
      event.preventDefault();
      action.run(async () => {
        const { job } = await post<{ job: string }>("/jobs/v1", jobRequestOf(form));
        go("jobs", { job });
      });
    }}>
      <Tabs of={kinds} current={kJobKinds[form.kind]} onChange={(name) => edit({ kind: Object.keys(kJobKinds)[kinds.indexOf(name)] as JobKind })} />
      <p class="quiet">{kMeanings[form.kind]}</p>
      <div class="fields">
        <Select label="Type" value={form.type} options={types.map((one) => one.name)} onChange={(name) => edit({ type: name })} />
        <Input label="Selection" value={form.selection} onInput={(selection) => edit({ selection })} placeholder={`${form.type}.${number} > 3`} />
        <Input label="Throttle" value={form.throttle} onInput={(throttle) => edit({ throttle })} placeholder="none" hint="bytes a second of all tasks together, as 2MB" />
      </div>
      {form.kind === "application" && <ApplicationFields form={form} edit={edit} />}
      {form.kind === "script" && <TextArea label="Script" value={form.script} onInput={(script) => edit({ script })} rows={9} isRequired />}
      {form.kind === "aggregation" && <AggregationFields form={form} types={types.map((one) => one.name)} fields={fields} edit={edit} />}
      <Problem error={action.error ?? error} />
      {!error && <>
        <Code label="The same on the command line" text={commandLine} />
        <Code label="The same over HTTP: POST /jobs/v1" text={request} />
      </>}
      <div class="row">
        <button type="submit" class="main" disabled={action.isBusy || error !== undefined}>{action.isBusy ? "Starting…" : "Start the job"}</button>
        <a class="button" href={href("jobs")}>Close</a>
      </div>
    </form>
  );
}

/** The form of a new job, filled in like the job `again`, if that is not empty. */
export function JobFormPanel({ again }: { again: string }) {
  const schemas = usePoll<{ types: DocumentType[] }>("/schemas/v1");
  const from = usePoll<Job>(again ? `/jobs/v1/${encodeURIComponent(again)}` : "");
  const types = (schemas.data?.types ?? []).filter((type) => !type.name.startsWith("fjord_"));
  if (schemas.data && types.length === 0) return <Begin />;
  return (
    <Panel title="New job">
      <Problem error={schemas.error} doing="The document types" />
      <Problem error={from.error} doing={again} />
      {schemas.isLoading && <Loading />}
      {types.length > 0 && (from.data || !again) && <Form types={types} first={from.data ? formAgain(from.data) ?? {} : {}} />}
    </Panel>
  );
}
