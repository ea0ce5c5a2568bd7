// Functions of the console that need no browser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { bytes, command, duration, latency, percent, plural, rate, shell, short } from "#page/lib/format";
import { pathOf, updateOf } from "#page/pages/data";
import { query } from "#page/lib/api";

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

test("a query leaves out what has no value", () => {
  assert.equal(query("/a", { b: "x y", c: "", d: undefined, e: 0 }), "/a?b=x+y&e=0");
  assert.equal(query("/a", {}), "/a");
});
