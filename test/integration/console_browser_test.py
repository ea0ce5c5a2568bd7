"""The console in headless Chromium, on a live cluster: every page, keys, a node and the gateway killed, documents, settings."""

import json
import re
import statistics

import harness
from console_browser import CITIES, ConsoleBrowser, LOOKS, SCHEMA
from harness import wait_until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# Page, and what its heading says.
PAGES = [("overview", "Overview"), ("nodes", "Nodes"), ("buckets", "Buckets"), ("state", "State"), ("data", "Data"),
         ("aggregate", "Aggregate"), ("jobs", "Jobs"), ("tuning", "Tuning"), ("settings", "Live settings")]


FIRST_PAINT_MS_MAX = 5000


class ConsoleBrowserTest(ConsoleBrowser):
    schemas = [SCHEMA, "document ledger { field l type long { header } field al type array<long> { header } }"]

    def start_endless_job(self):
        """Its tasks may send so little that it does not end by itself. Returns its id."""
        return self.cluster.must("job", "run", "fieldstats", "--type", "visit", "--param", "group=note", "--param", "value=cost",
                                 "--shuffle", "store", "--set", "throttle=100").out.split()[0]

    def state_of(self, node):
        return next(one["state"] for one in self.cluster.must("node", "list", "-o", "json").json() if one["node"] == node)

    def test_every_page_in_light_dark_and_narrow(self):
        for look in LOOKS:
            self.look(*look)
            for page, heading in PAGES:
                with self.subTest(page=page, look=look[0]):
                    self.go(page, heading)
                    self.assertEqual(self.texts("[role=alert]"), [])
                    self.check_widths(look)
                    self.assertEqual(self.texts("nav [aria-current=page]"), [heading])
                    self.screenshot(f"{page}-{look[0]}")
                    self.look(*look)

    def test_the_page_is_there_soon(self):
        """The goal is a second. The bound is for a machine that has other work."""
        paints = []
        for _ in range(3):
            self.go("overview", "Overview")
            paints.append(self.browser.execute_script(
                "return performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        print(f"\nfirst paint after {', '.join(f'{one:.0f}' for one in paints)} ms")
        self.assertLess(statistics.median(paints), FIRST_PAINT_MS_MAX)

    def test_every_page_while_a_node_is_down_and_a_job_runs(self):
        job = self.start_endless_job()
        self.cluster.kill("storage.1")
        self.addCleanup(self.cluster.wait_healthy)
        self.addCleanup(self.cluster.restart, "storage.1")
        wait_until(lambda: self.state_of("storage.1") != "up", "storage.1 is not up")
        wanted = {"overview": ["Degraded", "fieldstats on visit"], "nodes": ["storage.1"],
                  "state": ["storage 1: up →"], "jobs": ["fieldstats"]}
        for look in LOOKS:
            self.look(*look)
            for page, heading in PAGES:
                with self.subTest(page=page, look=look[0]):
                    self.go(page, heading)
                    for text in wanted.get(page, []):
                        self.see(text)
                    self.assertEqual(self.texts("main [role=alert], .lost"), [])
                    self.check_widths(look)
                    self.screenshot(f"{page}-node-down-{look[0]}")
                    self.look(*look)
        self.cluster.must("job", "cancel", job)

    def test_colours_can_be_chosen(self):
        def background():
            return self.browser.execute_script("return getComputedStyle(document.querySelector('.panel')).backgroundColor")
        self.go("overview", "Overview")
        light = background()
        for choice in ("Dark", "As the system"):
            for option in self.browser.find_elements(By.CSS_SELECTOR, ".side select option"):
                if option.text == choice:
                    option.click()
            wait_until(lambda: (background() == light) == (choice != "Dark"), f"the colours of {choice}")
            if choice == "Dark":
                self.go("nodes", "Nodes")
                self.assertNotEqual(background(), light, "the choice is kept")

    def test_everything_can_be_reached_with_the_keyboard(self):
        self.go("overview", "Overview")
        self.press("g", "n")
        wait_until(lambda: self.texts("h1") == ["Nodes"], "g n shows the nodes")
        self.press("g", "l")
        wait_until(lambda: self.texts("h1") == ["Live settings"], "g l shows the live settings")
        self.see("storage.visitors_max")
        self.press("/")
        self.press("visitors_max")
        wait_until(lambda: "1 setting" in self.texts("h2"), "the filter is in force")
        # Tab leads from the filter past the table, which can be scrolled, to the first link in it; Enter opens it.
        focused = "return document.activeElement.innerText"
        for _ in range(10):
            self.press(Keys.TAB)
            if self.browser.execute_script(focused) == "storage.visitors_max":
                break
        self.assertEqual(self.browser.execute_script(focused), "storage.visitors_max")
        outline = self.browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
        self.assertEqual(outline, "solid", "the focus can be seen")
        self.press(Keys.ENTER)
        self.see("New value", "dialog")
        self.assertTrue(self.browser.execute_script("return document.querySelector('dialog').contains(document.activeElement)"))
        self.press(Keys.ESCAPE)
        wait_until(lambda: not self.texts("dialog"), "Escape closes the dialog")
        self.browser.execute_script("document.activeElement.blur()")
        self.press("?")
        self.see("First input of the page", "dialog")
        self.press(Keys.ESCAPE)
        wait_until(lambda: not self.texts("dialog"), "Escape closes the dialog")

    def test_a_killed_node_is_seen_without_a_reload(self):
        self.go("overview", "Overview")
        self.see("Healthy")
        self.cluster.kill("storage.1")
        self.see("Degraded")
        self.see("storage.1")
        self.see("Without the figures of storage.1")
        self.screenshot("overview-degraded")
        self.go("nodes", "Nodes")
        wait_until(lambda: any(row.startswith("storage.1") and ("down" in row or "maintenance" in row) for row in self.texts("tr")),
                   "storage.1 is down")
        self.screenshot("nodes-degraded")
        self.go("state", "State")
        self.see("storage 1: up → down")
        self.cluster.restart("storage.1")
        self.cluster.wait_healthy()
        self.go("overview", "Overview")
        self.see("Healthy")

    def test_a_lost_gateway_is_said_and_the_page_recovers(self):
        self.may_lose_gateway = True
        self.go("overview", "Overview")
        self.see("Healthy")
        self.cluster.kill("gateway.0")
        self.see("does not answer", ".lost")
        self.assertIn("Healthy", self.text("main"), "the last figures stay")
        self.screenshot("gateway-lost")
        self.cluster.restart("gateway.0")
        wait_until(lambda: not self.texts(".lost"), "the page goes on by itself")
        self.see("Healthy")
        self.assertEqual(self.texts("main [role=alert]"), [])

    def test_a_document_is_found_changed_and_removed(self):
        self.go("data?type=visit", "Data")
        wait_until(lambda: len(self.texts("main tbody tr")) >= 20, "20 documents")
        first = self.texts("main tbody tr")
        self.click("Next")
        wait_until(lambda: self.texts("main tbody tr") not in (first, []), "the next documents")
        self.fill("Selection", "visit.cost == 7")
        self.press(Keys.ENTER)
        wait_until(lambda: len(self.texts("main tbody tr")) == 1, "one document")
        self.assertIn("fjord visit --type visit --selection 'visit.cost == 7' --limit 20", self.text("pre"))
        self.click("id:v:visit::7")
        self.see('"cost": 7')
        self.screenshot("data-document")
        self.click("Edit")
        self.fill("Fields", '{"city": "Bodo", "cost": 7, "note": "changed here"}', "dialog")
        self.click("Show what changes", "dialog")
        self.see("1 field will be changed", "dialog")
        self.screenshot("data-edit")
        self.click("Change the document", "dialog")
        self.see('"note": "changed here"')
        self.assertEqual(self.cluster.must("get", "id:v:visit::7").json()["fields"], {"city": "Bodo", "cost": 7, "note": "changed here"})
        self.click("Remove")
        self.see("cannot be taken back", "dialog")
        self.assertEqual(self.cluster.fjord("get", "id:v:visit::7").code, 0, "nothing is removed before it is confirmed")
        self.may_lose_gateway = True  # The page asks for the removed document: 404.
        self.click("Remove the document", "dialog")
        self.see("There is no such document")
        self.assertEqual(self.cluster.fjord("get", "id:v:visit::7").code, harness.NOT_FOUND)

    def test_a_page_of_documents_on_a_telephone(self):
        self.look("narrow", 390, False)
        self.go("data?type=visit", "Data")
        wait_until(lambda: len(self.texts("main tbody tr")) >= 20, "20 documents")
        self.check_widths(("narrow", 390, False))
        heights = self.browser.execute_script("return [...document.querySelectorAll('main tbody tr')].map((one) => one.offsetHeight)")
        self.assertLess(max(heights), 200, "a card for each document")
        self.screenshot("data-telephone")

    def test_numbers_keep_their_digits(self):
        """2^53 + 1 is what a number of JavaScript cannot hold."""
        large = 2**53 + 1
        self.cluster.must("put", "id:v:ledger::a", json.dumps({"l": large, "al": [large, 5]}))
        self.cluster.must("put", "id:v:ledger::b", json.dumps({"l": 2 * large}))
        self.go("data?type=ledger&id=id:v:ledger::a", "Data")
        self.see(f'"l": {large}')
        self.see(f"{large:,}", "[aria-label=Documents]")
        self.click("Edit")
        shown = self.browser.find_element(By.CSS_SELECTOR, "dialog textarea").get_attribute("value")
        self.fill("Fields", re.sub(r"\b5\b", "6", shown), "dialog")
        self.click("Show what changes", "dialog")
        self.see("1 field will be changed", "dialog")
        self.click("Change the document", "dialog")
        self.see("6\n")
        self.assertEqual(self.cluster.must("get", "id:v:ledger::a").json()["fields"], {"l": large, "al": [large, 6]})
        self.go("aggregate", "Aggregate")
        self.choose("Type", "ledger")
        self.fill("Compute", "sum(l), max(l)")
        self.press(Keys.ENTER)
        wait_until(lambda: self.texts("main tbody tr"), "the sum")
        self.assertEqual(self.texts("main tbody td"), [f"{3 * large:,}", f"{2 * large:,}"])

    def test_a_console_without_edits(self):
        buttons = "main button"
        path = "data?type=visit&id=id:v:visit::9"
        self.go(path, "Data")
        self.see('"cost": 9')
        self.assertLessEqual({"Edit", "Remove"}, set(self.texts(buttons)))
        self.port = self.read_only_port
        self.go(path, "Data")
        self.see('"cost": 9')
        self.see("changes no documents")
        self.assertEqual({"Edit", "Remove"} & set(self.texts(buttons)), set())
        self.screenshots("data-read-only")

    def test_a_selection_that_is_wrong_is_said_where_it_stands(self):
        self.may_lose_gateway = True  # The refusal is in the log of the browser.
        self.go("data?type=visit", "Data")
        wait_until(lambda: len(self.texts("main tbody tr")) >= 20, "20 documents")
        self.fill("Selection", 'city == "Oslo"')
        self.press(Keys.ENTER)
        self.see("did you mean visit.city?", "main [role=alert]")
        self.see("column 1:", "main [role=alert]")
        # Neither rows of before nor the word that nothing matches.
        self.assertEqual(self.texts("main tbody tr"), [])
        self.assertNotIn("No document matches", self.text("main"))

    def test_a_document_leads_to_its_replicas(self):
        self.go("buckets", "Buckets")
        self.fill("Id of a document", "id:v:visit::8")
        self.press(Keys.ENTER)
        self.see("All members have equal contents")
        self.assertIn("checksum", self.text("main table"))
        self.screenshot("buckets-document")

    def test_a_setting_is_changed_and_restored(self):
        self.go("settings?setting=storage.visitors_max", "Live settings")
        self.fill("New value", "61", "dialog")
        self.fill("Reason", "it's a test", "dialog")
        self.click("Show what changes", "dialog")
        self.see("61", "dialog .messages")
        self.assertNotIn("61", self.cluster.must("config", "get", "storage.visitors_max").out)
        self.assertIn("fjord config set storage.visitors_max=61 --reason 'it'\\''s a test'", self.text("dialog pre"))
        self.click("Change it", "dialog")
        self.see("→ 61")
        self.see("it's a test", "[aria-label='History of the live settings']")
        self.assertEqual(self.cluster.must("config", "history", "-o", "json").json_lines()[-1]["why"], "it's a test")
        self.assertIn("61", self.cluster.must("config", "get", "storage.visitors_max").out)
        # The default, too, is only restored after it was shown what that changes.
        self.click("storage.visitors_max")
        self.click("Restore the default", "dialog")
        self.see("61 -> default", "dialog .messages")
        self.assertIn("fjord config unset storage.visitors_max", self.text("dialog pre"))
        self.assertIn("61", self.cluster.must("config", "get", "storage.visitors_max").out)
        self.click("Cancel", "dialog")
        self.click("Take back")
        self.see("61", "dialog")
        self.click("Restore", "dialog")
        wait_until(lambda: "61" not in self.cluster.must("config", "get", "storage.visitors_max").out, "the setting is as before")

    def test_an_aggregation_has_a_table_and_a_chart(self):
        self.go("aggregate", "Aggregate")
        self.fill("Group by", "city")
        self.fill("Compute", "count(), max(cost) as most")
        self.fill("Order by", "city")
        self.assertIn("fjord aggregate --type visit --group-by city --order-by city 'count()' 'max(cost) as most'", self.text("pre"))
        self.press(Keys.ENTER)
        wait_until(lambda: len(self.texts("main tbody tr")) == len(CITIES), "a row for each city")
        self.assertTrue(self.texts("main tbody tr")[0].startswith("Bergen"))
        self.click("most", "th")
        wait_until(lambda: self.texts("main tbody tr")[0].startswith(CITIES[-1]), "the largest of the column first")
        self.click("most ↓", "th")
        wait_until(lambda: self.texts("main tbody tr")[0].startswith(CITIES[0]), "the smallest first")
        self.screenshot("aggregate-table")
        self.click("Chart")
        wait_until(lambda: len(self.texts(".bars .name")) == len(CITIES), "a bar for each city")
        self.screenshot("aggregate-chart")

    def test_an_aggregation_has_an_address(self):
        self.go("aggregate", "Aggregate")
        self.fill("Group by", "city")
        self.press(Keys.ENTER)
        wait_until(lambda: len(self.texts("main tbody tr")) == len(CITIES), "a row for each city")
        self.click("Chart")
        wait_until(lambda: self.texts(".bars .name"), "the chart")
        self.browser.refresh()
        wait_until(lambda: len(self.texts(".bars .name")) == len(CITIES), "the same chart after a reload")
        self.assertIn("--group-by city", self.text("pre"))
        self.click("Table")
        self.fill("Compute", "max(cost) as most")
        self.press(Keys.ENTER)
        wait_until(lambda: "most" in self.text("thead"), "another column")
        self.browser.back()
        wait_until(lambda: "count" in self.text("thead"), "the rows of before")

    def test_what_is_not_there_is_said(self):
        self.go("nosuchpage", "No such page")
        self.see("no page nosuchpage")
        self.go("nodes?node=storage.77", "Nodes")
        self.see("no node storage.77")
        self.go("data?id=banana", "Data")
        self.see("not the id of a document")
        self.assertNotIn("Replicas", self.texts("main a"))

    def test_a_page_that_is_opened_without_the_gateway_waits_for_it(self):
        self.may_lose_gateway = True
        self.go("overview", "Overview")
        self.see("Healthy")
        self.cluster.kill("gateway.0")
        self.see("does not answer", ".lost")
        self.press("g", "d")
        wait_until(lambda: self.texts("h1") == ["Data"], "the page Data")
        self.see("the gateway does not answer")
        self.cluster.restart("gateway.0")
        wait_until(lambda: len(self.texts("main tbody tr")) >= 20, "the documents, without a reload")

    def test_a_dialog_gives_the_focus_back_and_leaves_no_step_to_go_back_to(self):
        self.go("settings", "Live settings")
        self.fill("Only settings with", "visitors_max")
        self.click("storage.visitors_max")
        self.see("New value", "dialog")
        self.press(Keys.ESCAPE)
        wait_until(lambda: not self.texts("dialog"), "Escape closes the dialog")
        wait_until(lambda: self.browser.execute_script("return document.activeElement.innerText") == "storage.visitors_max", "the focus is back")
        self.assertIn("with=visitors_max", self.browser.current_url)
        self.browser.refresh()
        wait_until(lambda: "1 setting" in self.texts("h2"), "the filter is kept")
        self.browser.back()
        self.assertEqual(self.texts("dialog"), [])

    def test_a_node_change_is_planned_made_and_followed(self):
        self.go("nodes?node=storage.0", "Nodes")
        self.click("Maintenance")
        self.fill("Reason", "a test", "dialog")
        self.click("Show the plan", "dialog")
        self.see("buckets that move", "dialog")
        self.screenshot("nodes-plan")
        self.assertNotIn("maintenance", self.cluster.must("node", "list").out)
        self.click("Do it", "dialog")
        self.see("Maintenance: storage.0")
        self.see("Done")
        self.see("maintenance", "main dl.facts")
        self.screenshot("nodes-progress")
        self.click("Back to normal")
        self.click("Show the plan", "dialog")
        self.click("Do it", "dialog")
        wait_until(lambda: "maintenance" not in self.cluster.must("node", "list").out, "storage.0 is back")
        self.cluster.wait_healthy()

    def test_the_tuner_measures_and_advises(self):
        self.go("tuning", "Tuning")
        self.click("Measure for 10s and advise")
        self.see("Measure again")
        self.assertEqual(self.texts("[role=alert]"), [])
        self.see("What it is computed from")
        self.screenshots("tuning-advice")

    def test_a_job_is_watched_paused_throttled_and_cancelled(self):
        job = self.start_endless_job()
        self.go("overview", "Overview")
        self.see("fieldstats on visit")
        self.go(f"jobs?job={job}", "Jobs")
        self.see("running", ".headline")
        self.see("bound by")
        self.screenshot("jobs-running")
        self.click("Pause")
        self.see("paused", ".headline")
        self.assertEqual(self.cluster.must("job", "show", job, "-o", "json").json()["state"], "paused")
        self.click("Resume")
        self.see("running", ".headline")
        self.click("Throttle")
        self.fill("Throttle", "200", "dialog")
        self.click("Change", "dialog")
        self.see("throttle=200")
        self.cluster.kill("storage.2")
        self.click("Cancel the job")
        self.click("Cancel the job", "dialog")
        self.see("cancelled", ".headline")
        self.cluster.restart("storage.2")
        self.cluster.wait_healthy()


if __name__ == "__main__":
    harness.main()
