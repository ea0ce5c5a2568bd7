// Documents of a type, 20 at a time, and one document.

import { useEffect, useState } from "preact/hooks";
import { ApiError, get, query, send, useGateway, usePoll } from "../lib/api";
import { command, plural, text } from "../lib/format";
import { go, href } from "../lib/route";
import { readJson, writeJson, type Json } from "../lib/json";
import type { Chunk, DocumentType, Fields, StoredDocument } from "../lib/types";
import { Begin } from "../parts/begin";
import { Code, Dialog, Empty, Input, Loading, Panel, Problem, Select, useAction } from "../parts/basic";
import { Table } from "../parts/table";
import type { PageProps } from "../parts/page";

const kDocuments = 20;

/** Returns the types in the order of their use: those that jobs and the cluster itself use come last. */
export function typesOf(types: DocumentType[]): DocumentType[] {
  return types.toSorted((a, b) => Number(a.name.startsWith("fjord_")) - Number(b.name.startsWith("fjord_")));
}

/** Returns a selection of the documents of a type, and the number of characters in front of the user's part. */
export function selectionOf(type: string, selection: string): { text: string; before: number } {
  const before = `${type} and (`;
  return selection ? { text: `${before}${selection})`, before: before.length } : { text: type, before: 0 };
}

/** Returns an error with the column of the user's part of the selection. */
export function inSelection(error: unknown, before: number): unknown {
  if (!(error instanceof ApiError) || error.failure.code !== "INVALID_SELECTION") return error;
  const message = error.failure.message.replace(/\bcolumn (\d+)/, (all, column) => Number(column) > before ? `column ${Number(column) - before}` : all);
  return new ApiError(error.status, { ...error.failure, message });
}

/** Returns the field of an update whose JSON has this byte of the body {"fields":...}, counted from 1; undefined if none has. */
export function fieldAt(changes: Record<string, unknown>, byte: number): string | undefined {
  const length = (text: string) => new TextEncoder().encode(text).length;
  let end = length('{"fields":{');
  for (const [name, value] of Object.entries(changes)) {
    const begin = end;
    end += length(`${writeJson(name)}:${writeJson(value)},`);
    if (byte > begin && byte <= end) return name;
  }
  return undefined;
}

/** Returns an error of an update with the name of the field in place of a byte of JSON that the user has not seen. */
function ofField(error: unknown, changes: Record<string, unknown>): unknown {
  if (!(error instanceof ApiError)) return error;
  const place = /JSON, byte (\d+): /.exec(error.failure.message);
  const field = place && fieldAt(changes, Number(place[1]));
  if (!field) return error;
  return new ApiError(error.status, { ...error.failure, message: `field ${field}: ${error.failure.message.replace(place[0], "")}` });
}
const kColumns = 5;

/** Returns the path of a document in the document API; undefined if the id is malformed. */
export function pathOf(id: string): string | undefined {
  const parts = /^id:([^:]+):([^:]+):([^:]*):(.+)$/s.exec(id);
  if (!parts) return undefined;
  const [, space, type, place, user] = parts as unknown as string[];
  const where = place!.startsWith("n=") ? `number/${encodeURIComponent(place!.slice(2))}`
    : place!.startsWith("g=") ? `group/${encodeURIComponent(place!.slice(2))}` : "docid";
  return `/document/v1/${encodeURIComponent(space!)}/${encodeURIComponent(type!)}/${where}/${encodeURIComponent(user!)}`;
}

/** Returns what changes the stored fields into the edited ones: only fields that differ. */
export function updateOf(before: Fields, after: Fields): Record<string, { assign: Json }> {
  const changes: Record<string, { assign: Json }> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const next = after[name] ?? null;
    if (writeJson(before[name] ?? null) !== writeJson(next)) changes[name] = { assign: next };
  }
  return changes;
}

/** Returns a value of a field as JSON has it; a word for none. */
function storedText(value: Json | undefined, none: string): string {
  return value === null || value === undefined ? none : writeJson(value);
}

function parseFields(edited: string): Fields | string {
  try {
    const parsed: unknown = readJson(edited);
    if (parsed !== null && typeof parsed === "object" && !Array.isArray(parsed)) return parsed as Fields;
    return "The text is not a JSON object of fields.";
  } catch (error) {
    return `The text is not JSON: ${(error as Error).message}`;
  }
}

function Edit({ document, onClose, onDone }: { document: StoredDocument; onClose: () => void; onDone: () => void }) {
  const before = document.fields ?? {};
  const [edited, setEdited] = useState(writeJson(before, 2));
  const [isSure, setSure] = useState(false);
  const action = useAction();
  const after = parseFields(edited);
  const changes = typeof after === "string" ? {} : updateOf(before, after);
  const names = Object.keys(changes);
  return (
    <Dialog isWide title={`Edit ${document.id}`} onClose={onClose}>
      <form onSubmit={(event) => {
        event.preventDefault();
        if (!isSure) return setSure(true);
        action.run(async () => {
          await send("PUT", pathOf(document.id)!, { body: { fields: changes } });
          onDone();
        });
      }}>
        <label class="field wide"><span>Fields</span>
          <textarea spellcheck={false} value={edited} autoFocus onInput={(event) => {
            setEdited(event.currentTarget.value);
            setSure(false);
          }} />
        </label>
        {typeof after === "string" && <Problem error={new Error(after)} />}
        {isSure && <>
          <h3>{plural(names.length, "field")} will be changed, others stay as they are stored</h3>
          <Table label="Changes" rows={names} keyOf={(name) => name} columns={[
            { name: "field", cell: (name) => name },
            { name: "now", cell: (name) => <span class="wrap mono">{storedText(before[name], "not there")}</span> },
            { name: "then", cell: (name) => <span class="wrap mono">{storedText(changes[name]!.assign, "removed")}</span> },
          ]} />
          <Code label="The same on the command line" text={command("fjord", "update", document.id, writeJson(changes))} />
        </>}
        <Problem error={ofField(action.error, changes)} doing="Not changed" />
        <div class="actions">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="main" disabled={action.isBusy || names.length === 0}>{isSure ? "Change the document" : "Show what changes"}</button>
        </div>
      </form>
    </Dialog>
  );
}

function Remove({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) {
  const action = useAction();
  return (
    <Dialog title="Remove a document" onClose={onClose}>
      <p>Remove <b class="wrap">{id}</b> with all its replicas? This cannot be taken back.</p>
      <Code label="The same on the command line" text={command("fjord", "remove", id)} />
      <Problem error={action.error} doing="Not removed" />
      <div class="actions">
        <button type="button" onClick={onClose} autoFocus>Cancel</button>
        <button type="button" class="danger" disabled={action.isBusy} onClick={() => action.run(async () => {
          await send("DELETE", pathOf(id)!);
          onDone();
        })}>Remove the document</button>
      </div>
    </Dialog>
  );
}

function OneDocument({ id, edits, back, onChanged }: { id: string; edits: boolean; back: string; onChanged: () => void }) {
  const path = pathOf(id);
  const document = usePoll<StoredDocument>(path ?? "");
  const [dialog, setDialog] = useState<"" | "edit" | "remove">("");
  const close = () => setDialog("");
  const done = () => {
    close();
    document.reload();
    onChanged();
  };
  const isMissing = document.error?.status === 404;
  return (
    <Panel title={<span class="wrap">{id}</span>} aside={<>
      {edits && document.data && <>
        <button type="button" onClick={() => setDialog("edit")}>Edit</button>
        <button type="button" class="danger" onClick={() => setDialog("remove")}>Remove</button>
      </>}
      {path && <a class="button" href={href("buckets", { id })}>Replicas</a>}
      <a class="button" href={back}>Close</a>
    </>}>
      {!path && <Problem error={new Error("This is not the id of a document: expected id:NAMESPACE:TYPE::NAME.")} />}
      {document.isLoading && path && <Loading />}
      {isMissing ? <Empty>There is no such document.</Empty> : <Problem error={document.error} />}
      {document.data && <pre class="json" tabIndex={0} aria-label="Fields">{writeJson(document.data.fields ?? {}, 2)}</pre>}
      {path && <Code label="The same on the command line" text={command("fjord", "get", id)} />}
      {!edits && <p class="quiet">This gateway's console changes no documents (gateways[].console_edits).</p>}
      {dialog === "edit" && document.data && <Edit document={document.data} onClose={close} onDone={done} />}
      {dialog === "remove" && <Remove id={id} onClose={close} onDone={done} />}
    </Panel>
  );
}

/** Reads documents until a page is full or there are no more: an answer may have few of them and yet not be the last one. */
async function readPage(selection: string, token: string, signal: AbortSignal, onPart: (chunk: Chunk) => void) {
  const documents: StoredDocument[] = [];
  let continuation: string | undefined = token;
  do {
    const answer: Chunk = await get<Chunk>(query("/document/v1/", {
      cluster: "fjord", selection, wantedDocumentCount: kDocuments - documents.length, continuation, timeout: "20s",
    }), { signal });
    documents.push(...answer.documents);
    continuation = answer.continuation;
    onPart({ documents: [...documents], documentCount: documents.length, continuation });
  } while (continuation && documents.length < kDocuments);
}

function DocumentTable({ documents, type, empty, hrefOf }: { documents: StoredDocument[]; type: DocumentType; empty: string; hrefOf: (id: string) => string }) {
  const shown = type.fields.filter((field) => documents.some((one) => one.fields?.[field.name] !== undefined)).slice(0, kColumns);
  return (
    <Table label="Documents" rows={documents} keyOf={(one) => one.id} empty={empty} onOpen={(one) => { location.hash = hrefOf(one.id); }} columns={[
      { name: "id", cell: (one) => <a href={hrefOf(one.id)} class="wrap">{one.id}</a> },
      ...shown.map((field) => ({
        name: field.name,
        isNumber: /^(int|long|byte|float|double)$/.test(field.type),
        cell: (one: StoredDocument) => <span class="clip" title={text(one.fields?.[field.name])}>{text(one.fields?.[field.name])}</span>,
      })),
    ]} />
  );
}

/** The documents of a type, a page of them at a time. */
function Browse({ type, selection, version, hrefOf }: {
  type: DocumentType;
  selection: string;
  version: number;
  hrefOf: (id: string) => string;
}) {
  const [pages, setPages] = useState<string[]>([""]);
  const [chunk, setChunk] = useState<Chunk>();
  const [reading, setReading] = useState<AbortController>();
  const { returns } = useGateway();
  const action = useAction();
  const token = pages.at(-1)!;
  const wanted = selectionOf(type.name, selection);
  useEffect(() => {
    const abort = new AbortController();
    setReading(abort);
    // Rows of another page beside an error would look as if they matched.
    setChunk(undefined);
    action.run(() => readPage(wanted.text, token, abort.signal, setChunk));
    return () => abort.abort();
  }, [token, version, returns]);
  const documents = chunk?.documents ?? [];
  const isAborted = (action.error as Error | undefined)?.name === "AbortError";
  const empty = pages.length > 1 ? "These were all." : selection ? "No document matches." : "There are no documents of this type.";
  return (
    <Panel title={`Documents of the type ${type.name}`} aside={<>
      <button type="button" disabled={pages.length === 1 || action.isBusy} onClick={() => setPages(pages.slice(0, -1))}>Back</button>
      <button type="button" disabled={!chunk?.continuation || action.isBusy} onClick={() => setPages([...pages, chunk!.continuation!])}>Next</button>
    </>}>
      {isAborted ? <Empty>Cancelled.</Empty> : <Problem error={inSelection(action.error, wanted.before)} />}
      {documents.length > 0 && <p class="quiet">{plural(documents.length, "document")} on this page, in the order of the buckets. Sorted documents
        are an aggregation: <a href={href("aggregate", sortedBy(type, selection))}>the first 20 by a field</a>.</p>}
      {action.isBusy && <Loading onCancel={() => reading?.abort()} />}
      {chunk && (documents.length > 0 || !action.isBusy) && <DocumentTable documents={documents} type={type} empty={empty} hrefOf={hrefOf} />}
      <Code label="The same on the command line" text={command("fjord", "visit", "--type", type.name,
        ...(selection ? ["--selection", selection] : []), "--limit", String(Math.max(kDocuments, documents.length)))} />
    </Panel>
  );
}

/** Returns the form of the aggregation that lists documents by their first number, the largest first. */
function sortedBy(type: DocumentType, selection: string): Record<string, string> {
  const name = type.fields[0]?.name ?? "";
  const number = type.fields.find((field) => /^(int|long|byte|float|double)$/.test(field.type))?.name ?? name;
  const groups = name === number ? number : `${name}, ${number}`;
  return { type: type.name, selection, group_by: groups, aggregates: "count()", order_by: `${number} desc`, limit: "20" };
}

export function DataPage({ parameters, edits }: PageProps) {
  const schemas = usePoll<{ types: DocumentType[] }>("/schemas/v1");
  const types = typesOf(schemas.data?.types ?? []);
  const first = types.find((one) => !one.name.startsWith("fjord_"));
  const type = types.find((one) => one.name === parameters.get("type")) ?? first;
  const selection = parameters.get("selection") ?? "";
  const id = parameters.get("id") ?? "";
  const [edited, setEdited] = useState(selection);
  const [wanted, setWanted] = useState(id);
  const [version, setVersion] = useState(0);
  useEffect(() => setEdited(selection), [selection]);
  const place = { type: type?.name, selection };
  return (
    <>
      <header><h1>Data</h1></header>
      <Problem error={schemas.error} doing="The document types" />
      {schemas.isLoading && <Loading />}
      {schemas.data && !type && <Begin />}
      {type && <div class="grid">
        <Panel title="Browse">
          <form onSubmit={(event) => {
            event.preventDefault();
            go("data", { type: type.name, selection: edited.trim() });
          }}>
            <div class="fields">
              <Select label="Type" value={type.name} options={types.map((one) => one.name)} onChange={(name) => go("data", { type: name })} />
              <Input label="Selection" value={edited} onInput={setEdited} placeholder={`${type.name}.${type.fields[0]?.name ?? "field"} == …`} />
            </div>
            <button type="submit" class="main">Show</button>
          </form>
        </Panel>
        <Panel title="One document">
          <form onSubmit={(event) => {
            event.preventDefault();
            go("data", { ...place, id: wanted.trim() });
          }}>
            <div class="fields"><Input isWide label="Id" value={wanted} onInput={setWanted} placeholder={`id:shop:${type.name}::1`} isRequired /></div>
            <button type="submit">Get</button>
          </form>
        </Panel>
      </div>}
      {id && <OneDocument key={id} id={id} edits={edits} back={href("data", place)} onChanged={() => setVersion(version + 1)} />}
      {type && <Browse key={`${type.name} ${selection}`} type={type} selection={selection} version={version} hrefOf={(one) => href("data", { ...place, id: one })} />}
    </>
  );
}
