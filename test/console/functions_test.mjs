// Functions of the console that need no browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { bytes, command, duration, latency, listOf, percent, plural, rate, shell, short, text } from "#page/lib/format";
import { readJson, writeJson } from "#page/lib/json";
import { axisText, windowOf } from "#page/parts/chart";
import { compare } from "#page/parts/table";
import { csvOf } from "#page/lib/download";
import { fieldAt, inSelection, pathOf, selectionOf, typesOf, updateOf } from "#page/pages/data";
import { retiredText, stateText, waitText } from "#page/pages/nodes";
import { inputText, loadText } from "#page/pages/tuning";
import { kindOf, linesOf } from "#page/pages/state";
import { ApiError, query } from "#page/lib/api";
import { formAgain, jobCommandOf, jobRequestOf, parametersOf } from "#page/lib/jobrequest";

test("numbers have three digits that matter and a unit", () => {
  assert.equal(short(1234567), "1,234,567");
  assert.equal(short(12.345), "12.3");
  assert.equal(short(0.01234), "0.012");
  assert.equal(short(null), "–");
  assert.equal(rate(0), "0/s");
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(999), "999 B");
  assert.equal(bytes(1000), "0.98 KiB");
  assert.equal(bytes(5 * 2 ** 30), "5.00 GiB");
  assert.equal(bytes(-2048), "−2.00 KiB");
  assert.equal(percent(0.0312), "3.1 %");
  assert.equal(percent(1), "100 %");
  assert.equal(plural(1, "bucket"), "1 bucket");
  assert.equal(plural(2000, "bucket"), "2,000 buckets");
});

test("times have their two largest units", () => {
  assert.equal(latency(0.0000123), "12.3 µs");
  assert.equal(latency(0.0123), "12.3 ms");
  assert.equal(latency(2), "2 s");
  assert.equal(duration(0.01), "0 s");
  assert.equal(duration(9.94), "9.9 s");
  assert.equal(duration(61), "1 min 1 s");
  assert.equal(duration(3600), "1 h");
  assert.equal(duration(86400 * 12 + 3600 * 5), "12 d 5 h");
  assert.equal(duration(null), "–");
  // A rest that rounds up to a whole unit is not "1 h 60 min".
  assert.equal(duration(7199.9), "2 h");
  assert.equal(duration(59.9), "1 min");
  assert.equal(duration(3599.9), "1 h");
});

test("a command line can be pasted into a shell", () => {
  assert.equal(shell("storage.1"), "storage.1");
  assert.equal(shell("it's"), "'it'\\''s'");
  assert.equal(shell(""), "''");
  assert.equal(command("fjord", "visit", "--selection", "item.sold > 3", undefined, false), "fjord visit --selection 'item.sold > 3'");
});

test("a list is split at commas outside of parentheses and quotes", () => {
  assert.deepEqual(listOf("count(), sum(price) as sum"), ["count()", "sum(price) as sum"]);
  assert.deepEqual(listOf("round(price, 2) as p, city"), ["round(price, 2) as p", "city"]);
  assert.deepEqual(listOf("if(city == 'a,b', 1, 0) as x"), ["if(city == 'a,b', 1, 0) as x"]);
  assert.deepEqual(listOf(" , "), []);
});

test("CSV quotes what has commas, quotes and ends of lines", () => {
  const answer = { columns: ["city", "n"], rows: [["a,b", 1], ['say "x"', null], ["two\nlines", 2.5], ["", null]] };
  assert.equal(csvOf(answer), 'city,n\r\n"a,b",1\r\n"say ""x""",\r\n"two\nlines",2.5\r\n"",\r\n');
});

test("a text of a CSV file for a spreadsheet is not a formula", () => {
  const answer = { columns: ["=x", "n"], rows: [["=HYPERLINK(1)", -1], ["+1", 2], ["-1", 3], ["@a", 4], ["\tb", 5], ["a=b", 6]] };
  assert.equal(csvOf(answer, true), "'=x,n\r\n'=HYPERLINK(1),-1\r\n'+1,2\r\n'-1,3\r\n'@a,4\r\n'\tb,5\r\na=b,6\r\n");
  assert.equal(csvOf(answer), "=x,n\r\n=HYPERLINK(1),-1\r\n+1,2\r\n-1,3\r\n@a,4\r\n\tb,5\r\na=b,6\r\n");
});

test("the path of a document has its place", () => {
  assert.equal(pathOf("id:shop:item::a b/c"), "/document/v1/shop/item/docid/a%20b%2Fc");
  assert.equal(pathOf("id:shop:item:n=12:x"), "/document/v1/shop/item/number/12/x");
  assert.equal(pathOf("id:shop:item:g=a b:x:y"), "/document/v1/shop/item/group/a%20b/x%3Ay");
  assert.equal(pathOf("shop"), undefined);
});

test("an edit changes only the fields that differ", () => {
  const before = { title: "x", sold: 3, tags: ["a"], old: 1 };
  assert.deepEqual(updateOf(before, { title: "x", sold: 4, tags: ["a"], fresh: { a: 1 } }),
    { sold: { assign: 4 }, old: { assign: null }, fresh: { assign: { a: 1 } } });
  assert.deepEqual(updateOf(before, structuredClone(before)), {});
});

test("a difference of cluster states is a line for each part", () => {
  assert.deepEqual(linesOf("version: 1 => 2, storage: [1: [up => down, up since version: 1 => 0, description: => its process, which hung]]"),
    ["version: 1 → 2", "storage 1: up → down; up since version: 1 → 0; description: its process; which hung"]);
  assert.deepEqual(linesOf("version: 0 => 1, bits: 16 => 8, storage: [0: [down => up], 1: [down => up]], distribution: redundancy:2 (root 0 1 2)"),
    ["version: 0 → 1", "bits: 16 → 8", "distribution: redundancy:2 (root 0 1 2)", "storage 0: down → up", "storage 1: down → up"]);
  assert.deepEqual(linesOf("configuration 1: storage.visitors_max: default -> 61"), ["configuration 1: storage.visitors_max: default -> 61"]);
});

test("a query leaves out what has no value", () => {
  assert.equal(query("/a", { b: "x y", c: "", d: undefined, e: 0 }), "/a?b=x+y&e=0");
  assert.equal(query("/a", {}), "/a");
});

const kJob = { kind: "application", type: "sale", selection: "", throttle: "", application: "fieldstats", parameters: "", script: "", groupBy: "",
  aggregates: "", having: "", into: "", intoNamespace: "", name: "" };

test("parameters of a job are lines with a name and a value", () => {
  assert.deepEqual(parametersOf(" group = city\n\nvalue=a=b\nempty="), { group: "city", value: "a=b", empty: "" });
  assert.throws(() => parametersOf("group=city\nprice"), /"price": expected name=value/);
  assert.throws(() => parametersOf("=city"), /expected name=value/);
  assert.throws(() => parametersOf("a=1\na=2"), /a is there twice/);
});

test("the form of a job is the request and the command that start it", () => {
  const application = { ...kJob, selection: "sale.price > 3", throttle: "2MB", parameters: "group=city\nvalue=my price" };
  assert.deepEqual(jobRequestOf(application), {
    passes: [{ application: "fieldstats", type: "sale", selection: "sale.price > 3", parameters: { group: "city", value: "my price" } }],
    settings: { throttle: "2MB" },
  });
  assert.equal(jobCommandOf(application),
    "fjord job run fieldstats --type sale --selection 'sale.price > 3' --param group=city --param 'value=my price' --set throttle=2MB");
  const script = { ...kJob, kind: "script", script: "function map(d, emit)\nLUA\nend" };
  assert.deepEqual(jobRequestOf(script), { passes: [{ script: "function map(d, emit)\nLUA\nend", type: "sale" }] });
  assert.equal(jobCommandOf(script), "fjord job run script --type sale --script - <<'LUA_'\nfunction map(d, emit)\nLUA\nend\nLUA_");
  const rows = { ...kJob, kind: "aggregation", groupBy: "city, year", aggregates: "count() as n, sum(price) as all", having: "n > 2", into: "total",
    intoNamespace: "sums", name: "t" };
  assert.deepEqual(jobRequestOf(rows), { passes: [{ aggregation: { type: "sale", group_by: ["city", "year"],
    aggregates: ["count() as n", "sum(price) as all"], having: "n > 2", into: "total", into_namespace: "sums", name: "t" } }] });
  assert.equal(jobCommandOf(rows), "fjord aggregate --type sale --group-by 'city, year' --having 'n > 2' --into total --into-namespace sums --name t "
    + "'count() as n' 'sum(price) as all'");
});

test("the progress of a change of nodes says what it waits for", () => {
  const progress = { known: true, in_force: false, waits_for: [], buckets_left: 1, fraction_done: null, seconds_left: null };
  assert.equal(waitText(progress), "Not on all nodes yet. 1 bucket left");
  assert.equal(waitText({ ...progress, in_force: true, buckets_left: 12 }), "In force. 12 buckets left");
  assert.equal(waitText({ ...progress, waits_for: ["storage.3: never answered"] }), "Waiting until the node is up. storage.3: never answered");
});

test("what advice is computed from has its unit and its origin", () => {
  assert.equal(inputText({ name: "disk.read_rate", value: 1234567, unit: "bytes/s", origin: "measured" }), "disk.read_rate = 1,234,567 bytes/s (measured)");
  assert.equal(inputText({ name: "share", value: 0.25, unit: "", origin: "assumed" }), "share = 0.25 (assumed)");
  assert.equal(inputText({ name: "rate", value: null, unit: "1/s", origin: "measured" }), "rate = not known (measured)");
});

// Each is what a gateway may send for a field of a document, or a sum.
const kNumbers = ["0", "-0.0", "5", "9007199254740992", "9007199254740993", "-9223372036854775808", "18446744073709551615", "27021597764222979",
  "36893488147419103232", "0.1", "1e-7", "1.7976931348623157e+308", "0.30000000000000004",
  "0.1234567890123456789"];

test("JSON keeps the digits of its numbers", () => {
  const body = `{"l":[${kNumbers.join(",")}],"m":{"__proto__":9007199254740993,"t":"9007199254740993"}}`;
  assert.equal(writeJson(readJson(body)), body);
  assert.equal(readJson("[12]")[0], 12);
  // With as many digits as some programs write; it is the double 138.1.
  assert.equal(readJson("[138.09999999999999]")[0], 138.1);
});

test("an edit writes what nobody touched with its digits", () => {
  const before = readJson('{"l":9007199254740993,"al":[9007199254740993,5],"d":-0.0}');
  const after = readJson('{"l":9007199254740993,"al":[9007199254740993,6],"d":-0.0}');
  assert.equal(writeJson(updateOf(before, after)), '{"al":{"assign":[9007199254740993,6]}}');
  assert.equal(writeJson(updateOf(before, readJson('{"l":9007199254740992,"al":[9007199254740993,5],"d":0.0}'))),
    '{"l":{"assign":9007199254740992},"d":{"assign":0}}');
});

test("rows show and download all digits of a sum", () => {
  const answer = readJson('{"columns":["sum_l"],"rows":[[27021597764222979],[9007199254740993],[-12345],[1999],[17577.3333333333]]}');
  assert.equal(csvOf(answer), "sum_l\r\n27021597764222979\r\n9007199254740993\r\n-12345\r\n1999\r\n17577.3333333333\r\n");
  assert.deepEqual(answer.rows.map(([cell]) => text(cell)), ["27,021,597,764,222,979", "9,007,199,254,740,993", "-12,345", "1999", "17,577.333333"]);
  assert.equal(bytes(readJson("[36893488147419103232]")[0]), "32768 PiB");
});

test("a chart shows the last ten minutes, and no two marks of its axis have the same text", () => {
  assert.deepEqual(windowOf([1000, 2000]), [1400, 2000]);
  assert.deepEqual(windowOf([1900, 2000]), [1900, 2000]);
  assert.deepEqual(windowOf([1998, 2000]), [1940, 2000]);
  assert.deepEqual(windowOf([]), [0, 600]);
  const noon = Date.UTC(2026, 0, 1, 12) / 1000;
  assert.match(axisText(noon + 61, 60), /^\d\d:\d\d$/);
  for (const step of [1, 5, 30, 60, 300]) {
    const texts = [0, 1, 2, 3].map((mark) => axisText(noon + mark * step, step));
    assert.equal(new Set(texts).size, 4, texts.join());
  }
});

test("rows are sorted by value, also beyond 2^53, and what is not known comes last", () => {
  const values = readJson('["b",9007199254740993,null,9007199254740992,3,"a",-1.5,18446744073709551615]');
  assert.deepEqual(values.toSorted(compare).map(String),
    ["-1.5", "3", "9007199254740992", "9007199254740993", "18446744073709551615", "a", "b", "null"]);
});

test("the state of a node says what is wanted only if that is another state", () => {
  assert.equal(stateText({ state: "retired", wanted: "retired (uid 0@host: a test)" }), "retired");
  assert.equal(stateText({ state: "up", wanted: "maintenance (uid 0@host)" }), "up, wanted maintenance");
  assert.equal(stateText({ state: "up", wanted: "" }), "up");
});

test("an error in a selection has the column of what was typed", () => {
  const typed = 'name == "Oslo"';
  const { text: sent, before } = selectionOf("city", typed);
  assert.equal(sent, 'city and (name == "Oslo")');
  const refused = (message) => new ApiError(400, { code: "INVALID_SELECTION", message });
  const place = sent.indexOf("name") + 1;
  assert.equal(inSelection(refused(`selection, column ${place}: unknown document type 'name'`), before).message, "selection, column 1: unknown document type 'name'");
  assert.equal(selectionOf("city", "").text, "city");
  const other = new ApiError(503, { code: "UNAVAILABLE", message: "column 20" });
  assert.equal(inSelection(other, before), other);
});

test("an error in the JSON of an update names the field", () => {
  const changes = { "ø": { assign: "x" }, cost: { assign: "much" }, note: { assign: 3 } };
  const body = new TextEncoder().encode(writeJson({ fields: changes }));
  const byteOf = (word) => new TextDecoder("latin1").decode(body).indexOf(word) + 1;
  assert.equal(fieldAt(changes, byteOf('"much"')), "cost");
  assert.equal(fieldAt(changes, byteOf("3}")), "note");
  assert.equal(fieldAt(changes, 3), undefined);
});

test("types that the cluster itself uses come last", () => {
  assert.deepEqual(typesOf([{ name: "fjord_tuples" }, { name: "b" }, { name: "a" }]).map((type) => type.name), ["b", "a", "fjord_tuples"]);
});

test("a job can be started again from its record", () => {
  const pass = { application: "script", type: "sale", selection: "sale.n > 3", parameters: { script: "function map() end" } };
  assert.deepEqual(formAgain({ passes: [pass], settings: { throttle: "2MB" } }),
    { kind: "script", type: "sale", selection: "sale.n > 3", throttle: "2MB", script: "function map() end" });
  const application = { ...pass, application: "fieldstats", parameters: { group: "city", value: "price" } };
  assert.equal(formAgain({ passes: [application], settings: {} }).parameters, "group=city\nvalue=price");
  assert.equal(formAgain({ passes: [pass, pass], settings: {} }), undefined);
  assert.equal(formAgain({ passes: [{ ...pass, application: "aggregate" }], settings: {} }), undefined);
});

test("changes of the cluster state have a kind", () => {
  assert.equal(kindOf({ what: "configuration 1: storage.visitors_max: default -> 61", why: "" }), "settings");
  assert.equal(kindOf({ what: "version: 1 => 2, storage: [1: [up => down]]", why: "" }), "nodes");
});

test("a retired node says how far it is, and a load has its unit", () => {
  assert.equal(retiredText({ buckets: 3 }), "3 buckets still on it");
  assert.equal(retiredText({ buckets: 0 }), "empty: it may be removed");
  assert.equal(loadText(36.12, "operations_per_second"), "36.1 operations/s");
  assert.equal(loadText(0.25, "processor_share"), "25 %");
});

/** The contrast of WCAG 2.2 between two colours "#rrggbb". */
function contrast(a, b) {
  const luminance = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

test("the edges of inputs can be seen in both themes", () => {
  const style = readFileSync(join(process.cwd(), "page/style.css"), "utf8");
  const colors = (name) => new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(style).slice(1);
  for (const theme of [0, 1]) {
    for (const back of ["back", "panel"]) {
      assert.ok(contrast(colors("edge")[theme], colors(back)[theme]) >= 3, `${back} ${theme}: ${contrast(colors("edge")[theme], colors(back)[theme])}`);
    }
  }
});
