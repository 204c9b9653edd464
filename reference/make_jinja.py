"""Make the files that the tests of the chat templates read.

    build/venv/bin/python reference/make_jinja.py --out tests/data/jinja

OUT/variables.json, and OUT/cases.jsonl with one line per small template: `template`, and jinja2's
result with these variables and transformers' settings: `text`, or `error`, "syntax" or "run". Today
is the 26th of July 2024, for strftime_now.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path

import jinja2
from transformers.utils import chat_template_utils

from jinja_cases import VARIABLES, templates

NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return NOW


def rendered(template: str, variables: dict) -> dict[str, str]:
    """{"text": ...}, or {"error": its kind}."""
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
    except (jinja2.TemplateSyntaxError, SyntaxError, ValueError, TypeError):
        return {"error": "syntax"}
    try:
        return {"text": compiled.render(**variables)}
    except Exception:  # noqa: BLE001: templates can raise any error
        return {"error": "run"}


def make_jinja(folder: Path) -> None:
    chat_template_utils.datetime = FixedClock
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "variables.json").write_text(
        json.dumps(VARIABLES, ensure_ascii=False, indent=1) + "\n"
    )
    with open(folder / "cases.jsonl", "w") as out:
        for template in templates():
            case = {"template": template} | rendered(template, VARIABLES)
            out.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    make_jinja(parser.parse_args().out)
