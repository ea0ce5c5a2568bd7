// An aggregation: a form that becomes the command line and the JSON; its rows as table and chart.

import { useEffect, useState } from "preact/hooks";
import { post, usePoll } from "../lib/api";
import { command, count, listOf, plural, text } from "../lib/format";
import { csvOf, download } from "../lib/download";
import { isNumber, writeJson } from "../lib/json";
import { go, href, note, recordOf } from "../lib/route";
import type { AggregateAnswer, Cell, DocumentType } from "../lib/types";
import { Bar, Code, Empty, Input, Loading, Panel, Problem, Select, Tabs, useAction } from "../parts/basic";
import { Begin } from "../parts/begin";
import type { PageProps } from "../parts/page";
import { Table } from "../parts/table";

const kRows = 2000;
const kBars = 100;

interface Form {
  type: string;
  selection: string;
  group_by: string;
  aggregates: string;
  having: string;
  order_by: string;
  limit: string;
}

function requestOf(form: Form) {
  const limit = Number(form.limit);
  return {
    type: form.type,
    ...(form.selection && { selection: form.selection }),
    ...(form.group_by && { group_by: listOf(form.group_by) }),
    aggregates: listOf(form.aggregates),
    ...(form.having && { having: form.having }),
    ...(form.order_by && { order_by: listOf(form.order_by) }),
    ...(limit > 0 && { limit }),
  };
}

function commandOf(form: Form): string {
  const option = (name: string, value: string) => (value ? [name, value] : []);
  return command("fjord", "aggregate", "--type", form.type, ...option("--selection", form.selection), ...option("--group-by", form.group_by),
    ...option("--having", form.having), ...option("--order-by", form.order_by), ...option("--limit", form.limit), ...listOf(form.aggregates));
}

/** The length of a bar needs no more digits than a number of JavaScript has. */
const sizeOf = (cell: Cell | undefined) => (isNumber(cell) ? Number(cell) : 0);

/** Bars of one column with numbers, named by the columns of the groups. */
function Bars({ answer, groups }: { answer: AggregateAnswer; groups: number }) {
  const numeric = answer.columns.map((_, at) => at).filter((at) => at >= groups && answer.rows.some((row) => isNumber(row[at]!)));
  const [column, setColumn] = useState(numeric[0] ?? -1);
  if (!numeric.includes(column)) return <p class="quiet">No column has numbers.</p>;
  const rows = answer.rows.slice(0, kBars);
  const most = Math.max(...rows.map((row) => Math.abs(sizeOf(row[column]))), Number.MIN_VALUE);
  return (
    <>
      {numeric.length > 1 && <div class="fields">
        <Select label="Column" value={String(column)} options={numeric.map((at): [string, string] => [String(at), answer.columns[at]!])} onChange={(at) => setColumn(Number(at))} />
      </div>}
      <div class="bars">
        {rows.map((row, at) => {
          const name = row.slice(0, groups).map(text).join(", ") || "all";
          const value = row[column]!;
          return <>
            <span key={`n${at}`} class="name" title={name}>{name}</span>
            <Bar key={`b${at}`} share={Math.abs(sizeOf(value)) / most} tone={sizeOf(value) < 0 ? "bad" : "idle"} label={text(value)} />
            <span key={`v${at}`} class="value">{text(value)}</span>
          </>;
        })}
      </div>
      {answer.rows.length > kBars && <p class="quiet">The first {kBars} of {count(answer.rows.length)} rows.</p>}
    </>
  );
}

const kViews = ["Table", "Chart", "JSON"];

function Answer({ answer, groups, seconds, view, onView }: Done & { view: string; onView: (view: string) => void }) {
  const rows = answer.rows.slice(0, kRows);
  return (
    <Panel title={plural(answer.rows.length, "row")} aside={<>
      <Tabs of={kViews} current={view} onChange={onView} />
      <button type="button" onClick={() => download("aggregate.csv", "text/csv", csvOf(answer))}>Download CSV</button>
      <button type="button" onClick={() => download("aggregate.csv", "text/csv", csvOf(answer, true))}>CSV for a spreadsheet</button>
      <button type="button" onClick={() => download("aggregate.json", "application/json", writeJson(answer, 2))}>Download JSON</button>
    </>}>
      <p class="quiet">{plural(answer.documents_read, "document")} of {plural(answer.buckets_read, "bucket")} read in {seconds.toFixed(seconds < 10 ? 2 : 0)} s
        {answer.dead_letters > 0 && <>; <a href={href("jobs", { job: answer.job })}>{plural(answer.dead_letters, "document")} could not be read</a></>}.</p>
      {view === "Table" && <>
        <Table label="Rows" rows={rows} keyOf={(_, at) => String(at)} empty="No row." columns={answer.columns.map((name, at) => ({
          name,
          isNumber: rows.some((row) => isNumber(row[at]!)),
          by: (row: Cell[]) => row[at],
          cell: (row: Cell[]) => <span class="wrap">{text(row[at])}</span>,
        }))} />
        {answer.rows.length > kRows && <p class="quiet">The first {count(kRows)} rows; the download has all.</p>}
      </>}
      {view === "Chart" && <Bars answer={answer} groups={groups} />}
      {view === "JSON" && <pre class="json" tabIndex={0} aria-label="The answer as JSON">{writeJson({ ...answer, rows }, 2)}</pre>}
    </Panel>
  );
}

const kEmpty: Form = { type: "", selection: "", group_by: "", aggregates: "count()", having: "", order_by: "", limit: "" };
const kNames = Object.keys(kEmpty) as (keyof Form)[];

/** Returns the form that the address has; what is not there is empty. */
function formOf(parameters: URLSearchParams): Form {
  if (!parameters.has("aggregates")) return { ...kEmpty, type: parameters.get("type") ?? "" };
  return Object.fromEntries(kNames.map((name) => [name, parameters.get(name) ?? ""])) as unknown as Form;
}

function Fields({ form, types, edit }: { form: Form; types: DocumentType[]; edit: (name: keyof Form) => (value: string) => void }) {
  const type = types.find((one) => one.name === form.type);
  const fields = type?.fields.map((field) => field.name) ?? [];
  const numbers = type?.fields.filter((field) => /^(int|long|byte|float|double)$/.test(field.type)).map((field) => field.name) ?? [];
  const example = numbers[0] ?? "price";
  return (
    <div class="fields">
      <Select label="Type" value={form.type} options={types.map((one) => one.name)} onChange={edit("type")} />
      <Input label="Selection" value={form.selection} onInput={edit("selection")} placeholder={`${form.type}.${example} > 3`} />
      <Input label="Group by" value={form.group_by} onInput={edit("group_by")} list={fields} placeholder={fields[0] ?? "city"} hint="expressions, with commas between; empty: all are one group" />
      <Input label="Compute" value={form.aggregates} onInput={edit("aggregates")} isRequired placeholder={`count(), avg(${example}) as mean`}
        hint="count(), sum(), avg(), min(), max(), …" list={["count()", ...numbers.flatMap((name) => [`count(), sum(${name}) as sum`, `count(), avg(${name}) as mean`])]} />
      <Input label="Only rows with" value={form.having} onInput={edit("having")} placeholder="count > 5" />
      <Input label="Order by" value={form.order_by} onInput={edit("order_by")} placeholder="count desc" />
      <Input label="Rows at most" value={form.limit} onInput={edit("limit")} type="number" placeholder="all" />
    </div>
  );
}

interface Done {
  answer: AggregateAnswer;
  groups: number;
  seconds: number;
}

/** The form, and the rows of the one in the address: it can be kept, sent and gone back to. */
function Aggregation({ types, parameters }: { types: DocumentType[]; parameters: URLSearchParams }) {
  const asked = formOf(parameters);
  const [form, setForm] = useState<Form>(asked);
  const [done, setDone] = useState<Done>();
  const [reading, setReading] = useState<AbortController>();
  const [again, setAgain] = useState(0);
  const action = useAction();
  const filled = { ...form, type: form.type || types[0]!.name };
  const isAsked = parameters.has("aggregates");
  const address = new URLSearchParams(asked as unknown as Record<string, string>).toString();
  useEffect(() => {
    setForm(asked);
    setDone(undefined);
    action.clear();
    if (!isAsked) return;
    const abort = new AbortController();
    setReading(abort);
    const request = requestOf({ ...asked, type: asked.type || types[0]!.name });
    const began = performance.now();
    action.run(async () => {
      const answer = await post<AggregateAnswer>("/aggregate/v1?timeout=600s", request, { signal: abort.signal });
      setDone({ answer, groups: (request.group_by ?? []).length, seconds: (performance.now() - began) / 1000 });
    });
    return () => abort.abort();
  }, [address, isAsked, again]);
  const isCancelled = (action.error as Error | undefined)?.name === "AbortError";
  return (
    <>
      <Panel title="What to compute">
        <form onSubmit={(event) => {
          event.preventDefault();
          go("aggregate", { ...filled, view: parameters.get("view") ?? "" });
          setAgain(again + 1);
        }}>
          <Fields form={filled} types={types} edit={(name) => (value) => setForm({ ...filled, [name]: value })} />
          <button type="submit" class="main" disabled={action.isBusy}>Compute</button>
        </form>
        {action.isBusy && <Loading what="Computing" onCancel={() => reading?.abort()} />}
        {action.isBusy && <p class="quiet">It is one of the <a href={href("jobs")}>jobs</a>, which show how far it is.</p>}
        {isCancelled ? <Empty>Cancelled.</Empty> : <Problem error={action.error} />}
        <Code label="The same on the command line" text={commandOf(filled)} />
        <Code label="The same over HTTP: POST /aggregate/v1" text={writeJson(requestOf(filled))} />
      </Panel>
      {done && <Answer answer={done.answer} groups={done.groups} seconds={done.seconds} view={parameters.get("view") ?? kViews[0]!}
        onView={(view) => note("aggregate", { ...recordOf(parameters), view })} />}
    </>
  );
}

export function AggregatePage({ parameters }: PageProps) {
  const schemas = usePoll<{ types: DocumentType[] }>("/schemas/v1");
  const types = (schemas.data?.types ?? []).filter((type) => !type.name.startsWith("fjord_"));
  return (
    <>
      <header><h1>Aggregate</h1></header>
      <Problem error={schemas.error} doing="The document types" />
      {schemas.isLoading && <Loading />}
      {schemas.data && types.length === 0 && <Begin />}
      {types.length > 0 && <Aggregation types={types} parameters={parameters} />}
    </>
  );
}
