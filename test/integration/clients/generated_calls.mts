// Drives a client with the types that openapi-typescript has made as fjord_http.d.ts, with the address of a gateway as argument. Ends with
// an error if an answer is another than expected.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./fjord_http.d.ts";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const path = { namespace: "generated", type: "item", user: "a b/ø" };
const kDocument = "/document/v1/{namespace}/{type}/docid/{user}";

const written = await client.POST(kDocument, { params: { path }, body: { fields: { title: "ø", sold: 3 } } });
assert.equal(written.data?.id, "id:generated:item::a b/ø");
await client.PUT(kDocument, { params: { path }, body: { fields: { sold: { increment: 1 } } } });
const found = await client.GET(kDocument, { params: { path } });
assert.deepEqual(found.data?.fields, { title: "ø", sold: 4 });
const chunk = await client.GET("/document/v1/{namespace}/{type}/docid/", { params: { path } });
assert.deepEqual(chunk.data?.documents.map((one) => one.fields?.["sold"]), [4]);
// A member with a default need not be there.
const sums = await client.POST("/aggregate/v1", { body: { type: "item", selection: "id.namespace == 'generated'", aggregates: ["sum(sold)"] } });
assert.deepEqual(typeof sums.data === "object" && sums.data.rows, [[4]]);
const status = await client.GET("/cluster/v1/status");
assert.equal(status.data?.nodes.some((node) => node.role === "storage"), true);
const wrong = await client.POST(kDocument, { params: { path }, body: { fields: { absent: 1 } } });
assert.match(wrong.error?.message ?? "", /absent/);
await client.DELETE(kDocument, { params: { path } });
const gone = await client.GET(kDocument, { params: { path } });
assert.equal(gone.response.status, 404);
