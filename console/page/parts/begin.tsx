// What to do first with an empty cluster.

import type { ComponentChildren } from "preact";
import { href } from "../lib/route";
import { Code, Panel } from "./basic";

function Step({ title, command, children }: { title: string; command: string; children: ComponentChildren }) {
  return <li><b>{title}</b> {children}<Code label="On the command line" text={command} /></li>;
}

/** Three commands from an empty cluster to a first answer. */
export function Begin() {
  return (
    <Panel title="Begin here">
      <p>The cluster has no document type yet. Each step is one command; <code>FJORD_CLUSTER</code> names the cluster, as <code>fjord local
        start</code> prints it.</p>
      <ol class="steps">
        <Step title="Deploy a schema:" command={"echo 'document city { field name type string { header } field population type long { header } }' > city.sd\nfjord schema deploy city.sd"}>
          which types of documents there are, and their fields.
        </Step>
        <Step title="Import a file:" command={"printf 'key,name,population\\n1,Oslo,717710\\n2,Bergen,291940\\n' > cities.csv\nfjord import --type city --id-field key cities.csv"}>
          CSV, JSON lines, Arrow or Parquet; the documents are in <a href={href("data")}>Data</a> then.
        </Step>
        <Step title="Ask:" command="fjord aggregate --type city 'count()' 'sum(population)'">
          an <a href={href("aggregate")}>aggregation</a> runs where the documents are.
        </Step>
      </ol>
    </Panel>
  );
}
