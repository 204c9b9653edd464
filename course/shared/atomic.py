"""Writes a whole file or nothing: no reader sees half of it, even if the writer is killed."""
import os


def write(path, content, mode=0o666):
    """content: str (written as UTF-8) or bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.touch(mode)
    new.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    new.replace(path)
