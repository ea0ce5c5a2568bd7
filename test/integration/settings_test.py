"""Settings: the value in force, its source, and rules between two settings whatever their sources."""

import unittest

import harness

FILE = """
distributor_options:
  merges_max: 5
"""


class SettingsTest(unittest.TestCase):
    def settings(self, cluster):
        listed = cluster.must("config", "list", "-o", "json").json()
        return {setting["name"]: setting for setting in listed["settings"]}

    def is_free(self, setting):
        """True for a setting of a node that does not affect the other tests of this cluster."""
        return setting["used_by"] != "fleet controller" and setting["type"] != "bool"

    def all_told(self, cluster):
        """True once every node has listed its settings, with its answer to a poll."""
        return self.settings(cluster)["storage.visitors_max"]["in_force"] != ""

    def test_value_in_force_and_its_source(self):
        with harness.Cluster(storage=2, redundancy=2, settings=FILE) as cluster:
            cluster.wait_healthy()
            harness.wait_until(lambda: self.all_told(cluster), "the nodes' settings")
            for name, setting in self.settings(cluster).items():
                with self.subTest(name):
                    self.assertNotEqual(setting["in_force"], "")
                    self.assertEqual(setting["elsewhere"], [])
                    # The default of the table is that of the program.
                    if setting["source"] == "built in" and setting["default"]:
                        self.assertEqual(setting["in_force"], setting["default"])
            self.assertEqual(cluster.must("config", "get", "distributor.merges_max").out.strip(),
                             "5  (configuration file)")
            self.assertEqual(cluster.must("config", "get", "controller.down_after").out.strip(), "1800ms  (built in)")
            self.assertNotIn("(configuration file)", cluster.must("config", "get", "storage.entries_max").out)

            # A rule between a live value and one that is not live.
            refused = cluster.fjord("config", "set", "controller.lease=5min")
            self.assertEqual(refused.code, harness.USAGE, refused)
            self.assertIn("controller.down_after (1800ms, built in)", refused.err)
            cluster.must("config", "set", "controller.lease=5s", "controller.down_after=6s")
            self.assertEqual(cluster.must("config", "get", "controller.lease").out.strip(), "5s  (live configuration)")
            # Removing the other value breaks the rule as well.
            self.assertEqual(cluster.fjord("config", "unset", "controller.down_after").code, harness.USAGE)
            cluster.must("config", "unset", "controller.down_after", "controller.lease")

            # Every bound of the table is also one of the process that uses the setting.
            for bound in ("max", "min"):
                cluster.must("config", "set", *(f"{name}={setting[bound]}" for name, setting in
                                                self.settings(cluster).items() if self.is_free(setting)))
                harness.wait_until(lambda: not cluster.must("config", "list", "-o", "json").json()["waiting"],
                                   "all have it")
            listed = cluster.must("config", "list", "-o", "json").json()
            self.assertEqual(listed["errors"], [])


if __name__ == "__main__":
    harness.main()
