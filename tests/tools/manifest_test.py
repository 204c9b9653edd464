"""tests/data/manifest.json names each file that reference/ made, with its hash: a file that changed without it was not
made by reference/make_all.py, whose check would fail. Standard library only; ctest runs it."""
import hashlib
import json
import pathlib
import unittest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


class Manifest(unittest.TestCase):
    def test_has_the_hash_of_every_file(self):
        listed = json.loads((DATA / "manifest.json").read_text())["files"]
        folders = {name.split("/")[0] for name in listed}
        found = {path.relative_to(DATA).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                 for folder in folders for path in (DATA / folder).rglob("*") if path.is_file()}
        changed = sorted(name for name in {*listed, *found} if listed.get(name) != found.get(name))
        self.assertEqual(changed, [], "build/venv/bin/python reference/make_all.py, or --manifest")


if __name__ == "__main__":
    unittest.main()
