// The frame of all pages: navigation, the state of the gateway, keys.

import { useEffect, useRef, useState } from "preact/hooks";
import { useGateway, usePoll } from "./lib/api";
import { duration } from "./lib/format";
import { go, href, useRoute } from "./lib/route";
import { setTheme, theme, type Theme } from "./lib/theme";
import type { About } from "./lib/types";
import { Dialog, Panel } from "./parts/basic";
import { AggregatePage } from "./pages/aggregate";
import { BucketsPage } from "./pages/buckets";
import { DataPage } from "./pages/data";
import { JobsPage } from "./pages/jobs";
import { NodesPage } from "./pages/nodes";
import { OverviewPage } from "./pages/overview";
import { SettingsPage } from "./pages/settings";
import { StatePage } from "./pages/state";
import { TuningPage } from "./pages/tuning";

const kPages = [
  { key: "o", path: "overview", name: "Overview", Page: OverviewPage },
  { key: "n", path: "nodes", name: "Nodes", Page: NodesPage },
  { key: "b", path: "buckets", name: "Buckets", Page: BucketsPage },
  { key: "s", path: "state", name: "State", Page: StatePage },
  { key: "d", path: "data", name: "Data", Page: DataPage },
  { key: "a", path: "aggregate", name: "Aggregate", Page: AggregatePage },
  { key: "j", path: "jobs", name: "Jobs", Page: JobsPage },
  { key: "t", path: "tuning", name: "Tuning", Page: TuningPage },
  { key: "l", path: "settings", name: "Live settings", Page: SettingsPage },
];

/** The address names a page that there is not. */
const kNoPage = { key: "", path: "", name: "No such page", Page: NoPage };

function NoPage() {
  return (
    <>
      <header><h1>No such page</h1></header>
      <Panel><p>The console has no page {location.hash.replace(/^#\/?/, "").split("?", 1)[0]}. These are there:</p>
        <p class="row">{kPages.map((one) => <a key={one.path} href={href(one.path)}>{one.name}</a>)}</p></Panel>
    </>
  );
}

/** g and a letter go to a page, / to its first input, ? to the list of keys. */
function useKeys(onHelp: () => void) {
  const last = useRef("");
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, dialog")) return;
      const before = last.current;
      last.current = event.key;
      if (before === "g") {
        const page = kPages.find((one) => one.key === event.key);
        if (page) go(page.path);
      } else if (event.key === "?") {
        onHelp();
      } else if (event.key === "/") {
        const first = document.querySelector<HTMLElement>("main input:not([type=checkbox]), main select");
        if (first) event.preventDefault();
        first?.focus();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Says that the gateway does not answer, since when, and that the page goes on by itself. */
function Lost({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="lost" role="alert">
      <strong>The gateway {location.host} does not answer</strong> since {duration(Math.max(0, now - since) / 1000)}. What is shown is
      from before. It is asked each second, and the page goes on by itself.
    </div>
  );
}

function Keys({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="facts">
        {kPages.map((page) => <><dt><kbd>g</kbd> <kbd>{page.key}</kbd></dt><dd>{page.name}</dd></>)}
        <dt><kbd>/</kbd></dt><dd>First input of the page</dd>
        <dt><kbd>?</kbd></dt><dd>This list</dd>
        <dt><kbd>Esc</kbd></dt><dd>Close a dialog</dd>
      </dl>
      <p class="quiet">Made with Preact, uPlot and lossless-json: <a href="licenses.txt">licenses</a>. The gateway describes all that this page uses in{" "}
        <a href="/openapi.yaml">openapi.yaml</a>.</p>
    </Dialog>
  );
}

export function App() {
  const route = useRoute();
  const { lostSince } = useGateway();
  const about = usePoll<About>("/console/about.json").data;
  const [shown, setShown] = useState<Theme>(theme());
  const [hasHelp, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  const page = kPages.find((one) => one.path === route.page) ?? kNoPage;
  useEffect(() => {
    document.title = `${page.name} – Fjord`;
    // On a telephone the names of the pages are one line that scrolls.
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [page]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.querySelector<HTMLElement>("main")?.focus();
      }}>To the content</a>
      <div class="frame">
        <div class="side">
          <a class="brand" href={href("overview")}>Fjord</a>
          <nav aria-label="Pages">
            {kPages.map((one) => (
              <a key={one.path} href={href(one.path)} aria-current={one === page ? "page" : undefined}>{one.name}</a>
            ))}
          </nav>
          <footer>
            <select aria-label="Colours" value={shown} onChange={(event) => {
              const wanted = event.currentTarget.value as Theme;
              setTheme(wanted);
              setShown(wanted);
            }}>
              <option value="system">As the system</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
            <button type="button" class="plain about" onClick={() => setHelp(true)}>Keys <kbd>?</kbd></button>
            {about && <span class="about">{about.gateway} {about.version}{about.revision && <><br />{about.revision}</>}</span>}
          </footer>
        </div>
        <div>
          {lostSince !== null && <Lost since={lostSince} />}
          <main tabIndex={-1} key={page.path}>
            <page.Page parameters={route.parameters} edits={about?.edits ?? false} />
          </main>
        </div>
      </div>
      {hasHelp && <Keys onClose={() => setHelp(false)} />}
    </>
  );
}
