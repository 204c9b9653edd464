"""git for tests: it does not read the settings of whoever runs them, such as commit.gpgSign, and runs no hooks."""
import os
import subprocess

WHO = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
       for what, value in (("NAME", "ann"), ("EMAIL", "ann@example.org"))}
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **WHO}


def git(folder, *words):
    """The output of git in this folder."""
    still = ["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"]
    return subprocess.run(["git", "-C", str(folder), *still, *words], check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env={**os.environ, **ALONE}).stdout


def commit(folder):
    """Commits all files; returns the commit."""
    # With this setting, git writes all new contents into one file, not into hundreds. That takes a third of the time.
    git(folder, "-c", "core.bigFileThreshold=1", "add", "-A")
    git(folder, "commit", "-qm", "more")
    return git(folder, "rev-parse", "HEAD").strip()
