// Documents of a type, 20 at a time, and one document.

import { useEffect, useState } from "preact/hooks";
import { get, query, send, usePoll } from "../lib/api";
import { command, plural, text } from "../lib/format";
import { go, href } from "../lib/route";
import { readJson, writeJson, type Json } from "../lib/json";
import type { Chunk, DocumentType, Fields, StoredDocument } from "../lib/types";
import { Code, Dialog, Empty, Input, Loading, Panel, Problem, Select, useAction } from "../parts/basic";
import { Table } from "../parts/table";
import type { PageProps } from "../parts/page";

const kDocuments = 20;
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
        <Problem error={action.error} doing="Not changed" />
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
      <a class="button" href={href("buckets", { id })}>Replicas</a>
      <a class="button" href={back}>Close</a>
    </>}>
      {!path && <Problem error={new Error("This is not the id of a document: expected id:NAMESPACE:TYPE::NAME.")} />}
      {document.isLoading && path && <Loading />}
      {isMissing ? <Empty>There is no such document.</Empty> : <Problem error={document.error} />}
      {document.data && <pre class="json" tabIndex={0} aria-label="Fields">{writeJson(document.data.fields ?? {}, 2)}</pre>}
      <Code label="The same on the command line" text={command("fjord", "get", id)} />
      {!edits && <p class="quiet">This gateway's console changes no documents (gateways[].console_edits).</p>}
      {dialog === "edit" && document.data && <Edit document={document.data} onClose={close} onDone={done} />}
      {dialog === "remove" && <Remove id={id} onClose={close} onDone={done} />}
    </Panel>
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
  const action = useAction();
  useEffect(() => setPages([""]), [type.name, selection]);
  const token = pages.at(-1)!;
  useEffect(() => {
    const abort = new AbortController();
    action.run(async () => {
      // An answer may have few documents and yet not be the last one.
      const documents: StoredDocument[] = [];
      let continuation: string | undefined = token;
      do {
        const answer: Chunk = await get<Chunk>(query("/document/v1/", {
          cluster: "fjord",
          selection: selection ? `${type.name} and (${selection})` : type.name,
          wantedDocumentCount: kDocuments - documents.length,
          continuation,
          timeout: "20s",
        }), { signal: abort.signal });
        documents.push(...answer.documents);
        continuation = answer.continuation;
        setChunk({ documents: [...documents], documentCount: documents.length, continuation });
      } while (continuation && documents.length < kDocuments);
    });
    return () => abort.abort();
  }, [type.name, selection, token, version]);
  const documents = chunk?.documents ?? [];
  const shown = type.fields.filter((field) => documents.some((one) => one.fields?.[field.name] !== undefined)).slice(0, kColumns);
  const isAborted = (action.error as Error | undefined)?.name === "AbortError";
  return (
    <Panel title={`Documents of the type ${type.name}`} aside={<>
      {action.isBusy && <span class="quiet" role="status">Loading…</span>}
      <button type="button" disabled={pages.length === 1 || action.isBusy} onClick={() => setPages(pages.slice(0, -1))}>Back</button>
      <button type="button" disabled={!chunk?.continuation || action.isBusy} onClick={() => setPages([...pages, chunk!.continuation!])}>Next {kDocuments}</button>
    </>}>
      {!isAborted && <Problem error={action.error} />}
      {chunk && <Table label="Documents" rows={documents} keyOf={(one) => one.id}
        empty={pages.length > 1 ? "These were all." : selection ? "No document matches." : "There are no documents of this type."}
        onOpen={(one) => { location.hash = hrefOf(one.id); }} columns={[
          { name: "id", cell: (one) => <a href={hrefOf(one.id)} class="wrap">{one.id}</a> },
          ...shown.map((field) => ({
            name: field.name,
            isNumber: /^(int|long|byte|float|double)$/.test(field.type),
            cell: (one: StoredDocument) => <span class="clip" title={text(one.fields?.[field.name])}>{text(one.fields?.[field.name])}</span>,
          })),
        ]} />}
      <Code label="The same on the command line" text={command("fjord", "visit", "--type", type.name,
        ...(selection ? ["--selection", selection] : []), "--limit", String(kDocuments))} />
    </Panel>
  );
}

export function DataPage({ parameters, edits }: PageProps) {
  const schemas = usePoll<{ types: DocumentType[] }>("/schemas/v1");
  // Types that jobs and the cluster itself use come last.
  const types = (schemas.data?.types ?? []).toSorted((a, b) => Number(a.name.startsWith("fjord_")) - Number(b.name.startsWith("fjord_")));
  const type = types.find((one) => one.name === parameters.get("type")) ?? types[0];
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
      {schemas.data && !type && <Panel><p>No document type is deployed: <code>fjord schema deploy FILE.sd</code></p></Panel>}
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
      {type && <Browse type={type} selection={selection} version={version} hrefOf={(one) => href("data", { ...place, id: one })} />}
    </>
  );
}
