"""The work folder of the comparison: PostgreSQL runs as its own user, which needs access to it."""

import os
import pathlib
import pwd
import tempfile
import unittest

import compare
import systems


@unittest.skipUnless(os.geteuid() == 0, "only root can start a program as another user")
class PlacesTest(unittest.TestCase):
    def setUp(self):
        nobody = pwd.getpwnam("nobody")
        self.user = {"user": "nobody", "group": nobody.pw_gid, "extra_groups": []}
        self.temporary = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(self.temporary.cleanup)
        self.parent = pathlib.Path(self.temporary.name)
        self.parent.chmod(0o755)
        before = tempfile.tempdir
        self.addCleanup(setattr, tempfile, "tempdir", before)
        tempfile.tempdir = str(self.parent)

    def test_the_folder_is_where_others_can_go(self):
        folder = compare.make_work_folder()
        self.assertEqual(folder.parent, self.parent)
        self.assertTrue(systems.postgres_server.can_enter(folder, self.user))

    def test_a_folder_that_the_user_cannot_enter_is_said(self):
        self.parent.chmod(0o700)
        folder = compare.make_work_folder()
        self.assertFalse(systems.postgres_server.can_enter(folder, self.user))
        try:
            server = systems.Postgres(folder)
        except systems.Unavailable:
            return  # PostgreSQL is not installed.
        with self.assertRaisesRegex(systems.Unavailable, f"cannot enter {folder}.*TMPDIR"):
            server.start(None)


if __name__ == "__main__":
    unittest.main()
