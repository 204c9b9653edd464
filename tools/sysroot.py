"""The libraries of another architecture, unpacked from Debian's packages into a folder.

It needs neither root nor dpkg's foreign architectures, and changes nothing outside of the folder: apt uses lists in
that folder, and the packages are only unpacked.
"""
import pathlib
import subprocess

LIBRARIES = ("libc6-dev libstdc++6 libgtest-dev nlohmann-json3-dev libcli11-dev libfmt-dev "
             "libpcre2-dev libutf8proc-dev libedit-dev").split()


def make(folder: pathlib.Path, architecture: str) -> None:
    """Fills `folder`, unless it is already filled. Raises CalledProcessError."""
    done = folder / ".complete"
    if done.exists() and done.read_text().split() == LIBRARIES:
        return
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    get = ["apt-get", "-qq", "-o", f"APT::Architecture={architecture}",
           "-o", f"APT::Architectures={architecture}", "-o", f"Dir::State::Lists={apt}/lists",
           "-o", "Dir::State::status=/dev/null", "-o", f"Dir::Cache={apt}/cache",
           "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="]
    subprocess.run([*get, "update"], check=True)
    subprocess.run([*get, "-y", "--no-install-recommends", "--download-only", "install",
                    *LIBRARIES], check=True, stdout=subprocess.DEVNULL)
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    done.write_text(" ".join(LIBRARIES))
