"""Draws the plots of docs/kernels.md and docs/performance.md, and fills in the table of kernels.md.

    python3 docs/make_plots.py             from docs/measurements/*.json, which are in the repository
    python3 docs/make_plots.py --measure   measures here first, about 4 minutes; let nothing else run
                               (--measure threads batch: only those)

What --measure runs, as many processors for each as it has threads; MODEL is SmolLM2-135M as shipped (Q4_1: ./stage pull
smollm2-135m) and as Q8_0 (./stage convert smollm2-135m build/plots/smollm2-135m-q8_0.gguf --type q8_0):

    ./stage bench --operators
    ./stage bench --model MODEL -t 1 -p 512 -n 128            and 2, 3, 4 ...: twice the processors at most
    ./stage bench --model MODEL -p 0 -n 64 -b 1,2,3,4,5,6,7,8
    ./stage bench --model Q8_0 -p 0 -n 64 -d 0,512,1024,1536,2048,4096 --kv-type TYPE
"""
import argparse
import datetime
import html
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MEASUREMENTS = DOCS / "measurements"

# ---- measuring ----------------------------------------------------------------------------------

PULLED = "smollm2-135m"
CONVERTED = "build/plots/smollm2-135m-q8_0.gguf"
MODELS = {PULLED: "Q4_1", CONVERTED: "Q8_0"}
DEPTHS = "0,512,1024,1536,2048,4096"
KV_TYPES = "f32", "f16", "q8_0"


def machine():
    try:
        info = dict(re.findall(r"^([^\t:]+)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE))
        name = f"{info['model name']} (family {info['cpu family']}, model {info['model']})"
    except (OSError, KeyError):
        name = platform.processor() or platform.machine()
    return f"{name}, {len(processors())} processors"


def processors():
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else list(range(os.cpu_count()))


def bench(threads, *words):
    """The records of one ./stage bench, pinned to the last processors."""
    print("./stage bench", *words, flush=True)
    pinned = {"preexec_fn": lambda: os.sched_setaffinity(0, processors()[-threads:])} \
        if hasattr(os, "sched_setaffinity") else {}
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "bench.json"
        subprocess.run([ROOT / "stage", "bench", *words, "--json", out], cwd=ROOT, check=True, **pinned)
        return json.loads(out.read_text())


def shorter(value):
    """Six digits of each number are more than repeat; and no path of this machine."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [shorter(one) for one in value]
    return value


def keep(name, records):
    for record in records:
        if "model" in record:
            record["model"] = MODELS[CONVERTED if record["model"].endswith(CONVERTED) else PULLED]
    head = {"machine": machine(), "date": datetime.date.today().isoformat()}
    lines = ",\n  ".join(json.dumps({key: shorter(value) for key, value in record.items()}) for record in records)
    (MEASUREMENTS / f"{name}.json").write_text(json.dumps(head)[:-1] + f', "results": [\n  {lines}\n]}}\n')


def measure_operators():
    return bench(1, "--operators")


def measure_threads():
    counts = [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128) if n <= 2 * len(processors())]
    return [record for model in MODELS for n in counts
            for record in bench(min(n, len(processors())), "--model", model, "-t", str(n), "-p", "512", "-n", "128")]


def measure_batch():
    return [record for model in MODELS
            for record in bench(len(processors()), "--model", model, "-p", "0", "-n", "64", "-b", "1,2,3,4,5,6,7,8")]


def measure_depth():
    return [record for kv_type in KV_TYPES
            for record in bench(len(processors()), "--model", CONVERTED, "-p", "0", "-n", "64", "-d", DEPTHS,
                                "--kv-type", kv_type)]


MEASURE = {"operators": measure_operators, "threads": measure_threads, "batch": measure_batch, "depth": measure_depth}


def measure(names):
    if not (ROOT / CONVERTED).exists():
        (ROOT / CONVERTED).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([ROOT / "stage", "convert", PULLED, CONVERTED, "--type", "q8_0"], cwd=ROOT, check=True)
    for name in names:
        keep(name, MEASURE[name]())


# ---- drawing ------------------------------------------------------------------------------------

# Light and dark, told apart by shape too.
SERIES = ("#0969da", "#58a6ff"), ("#bc4c00", "#f0883e"), ("#1a7f37", "#3fb950"), ("#8250df", "#bc8cff"), \
         ("#bf3989", "#f778ba")
INK = {"paper": ("#ffffff", "#161b22"), "ink": ("#1f2328", "#e6edf3"), "pale": ("#59636e", "#9198a1"),
       "line": ("#d1d9e0", "#3d444d")}


def style():
    def rules(mode):
        colours = {name: pair[mode] for name, pair in INK.items()}
        lines = [f".paper{{fill:{colours['paper']}}}.ink{{fill:{colours['ink']}}}.pale{{fill:{colours['pale']}}}"
                 f".grid{{stroke:{colours['line']}}}.roof{{stroke:{colours['pale']}}}"]
        lines += [f".line{i}{{stroke:{pair[mode]}}}.fill{i}{{fill:{pair[mode]}}}"
                  for i, pair in enumerate(SERIES)]
        return "".join(lines)
    return (f"<style>text{{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}}"
            f".title{{font-weight:600;font-size:15px}}.small{{font-size:11px}}path{{fill:none}}.thick{{stroke-width:2}}"
            f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}</style>")


class Linear:
    """An axis from 0, with round ticks."""

    def __init__(self, top, ticks=None):
        step = 10 ** math.floor(math.log10(top / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if top / (step * factor) <= 6)
        self.top = top if ticks else math.ceil(top / step) * step
        self.ticks = ticks or [step * i for i in range(round(self.top / step) + 1)]

    def at(self, value):
        return value / self.top


class Logarithmic:
    def __init__(self, low, high, ticks):
        self.low, self.high, self.ticks = low, high, ticks

    def at(self, value):
        return math.log(value / self.low) / math.log(self.high / self.low)


class Picture:
    def __init__(self, width, height, note):
        self.width, self.height, self.parts = width, height, []
        self.text(width - 12, height - 10, note, "pale small", "end")

    def add(self, part):
        self.parts.append(part)

    def text(self, x, y, text, css="ink", anchor="start", more=""):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}"{more}>{html.escape(text)}</text>')

    def svg(self):
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}">\n{style()}\n'
                f'<rect class="paper" width="{self.width}" height="{self.height}" rx="8"/>\n{body}\n</svg>\n')


class Panel:
    """A pair of axes in a picture, and what is drawn between them."""

    def __init__(self, picture, box, title, x_axis, y_axis, x_title, y_title):
        self.picture, (self.left, self.top, self.width, self.height) = picture, box
        self.x_axis, self.y_axis, self.labels = x_axis, y_axis, []
        bottom = self.top + self.height
        picture.text(self.left, self.top - 26, title, "ink title")
        picture.text(self.left, self.top - 9, y_title, "pale")
        picture.text(self.left + self.width, bottom + 36, x_title, "pale", "end")
        for tick in y_axis.ticks:
            picture.add(f'<path class="grid" d="M{self.left},{self.y(tick):.1f}h{self.width}"/>')
            picture.text(self.left - 8, self.y(tick) + 4, f"{tick:,g}", "pale", "end")
        free = -math.inf
        for tick in x_axis.ticks:
            if self.x(tick) < free:
                continue
            free = self.x(tick) + 44
            picture.add(f'<path class="grid" d="M{self.x(tick):.1f},{bottom}v5"/>')
            picture.text(self.x(tick), bottom + 19, f"{tick:,g}", "pale", "middle")

    def x(self, value):
        return self.left + self.width * self.x_axis.at(value)

    def y(self, value):
        return self.top + self.height * (1 - self.y_axis.at(value))

    def marker(self, series, x, y):
        shapes = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>',
                  f'<rect x="{x - 3.6:.1f}" y="{y - 3.6:.1f}" width="7.2" height="7.2"/>',
                  f'<polygon points="{x:.1f},{y - 5:.1f} {x + 4.8:.1f},{y + 3.6:.1f} {x - 4.8:.1f},{y + 3.6:.1f}"/>',
                  f'<polygon points="{x:.1f},{y - 5.2:.1f} {x + 5.2:.1f},{y:.1f} {x:.1f},{y + 5.2:.1f} '
                  f'{x - 5.2:.1f},{y:.1f}"/>',
                  f'<polygon points="{x:.1f},{y + 5:.1f} {x + 4.8:.1f},{y - 3.6:.1f} {x - 4.8:.1f},{y - 3.6:.1f}"/>')
        self.picture.add(shapes[series].replace("/>", f' class="fill{series}"/>'))

    def line(self, series, points, label):
        """points: (x, y) or (x, y, lowest, highest)."""
        path = "L".join(f"{self.x(p[0]):.1f},{self.y(p[1]):.1f}" for p in points)
        self.picture.add(f'<path class="line{series} thick" d="M{path}"/>')
        for point in points:
            for low, high in [point[2:]] if len(point) == 4 else []:
                self.picture.add(f'<path class="line{series}" d="M{self.x(point[0]):.1f},{self.y(low):.1f}'
                                 f'V{self.y(high):.1f}"/>')
            self.marker(series, self.x(point[0]), self.y(point[1]))
        if label:
            self.label(series, self.x(points[-1][0]), self.y(points[-1][1]), label)

    def label(self, series, x, y, text):
        self.labels.append((y, x + 10, text, series))

    def finish(self):
        """The labels, one below the other where they would meet."""
        lowest = -math.inf
        for y, x, label, series in sorted(self.labels):
            lowest = max(y, lowest + 15)
            self.picture.text(x, lowest + 4, label, f"fill{series}")


def note(measured):
    """Under what: "note" is for whoever measured in other circumstances than the docstring asks for."""
    return "; ".join([measured["machine"], measured["results"][0]["isa"], measured["date"],
                      *([measured["note"]] if "note" in measured else [])])


def roofline(operators):
    results = operators["results"]
    picture = Picture(860, 520, note(operators))
    panel = Panel(picture, (70, 70, 620, 380), "How far the kernels are from what one core can do",
                  Logarithmic(0.4, 2048, [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]),
                  Logarithmic(1, 2000, [1, 10, 100, 1000]),
                  "operations for each byte of weights", "Gop/s (a multiply-add is two)")
    read, roofs = results[0]["read_ceiling"] * 1e-9, {}
    for name, roof in zip(("f32", "bf16", "bytes"), results[0]["operation_ceilings"]):
        roofs.setdefault(round(roof * 1e-9 / 5), (name, roof * 1e-9))  # where bf16 has no instruction, one roof
    for name, roof in roofs.values():
        x, y, end = panel.x(roof / read), panel.y(roof), panel.x(2048)
        picture.add(f'<path class="roof thick" d="M{x:.1f},{y:.1f}H{end:.1f}"/>')
        picture.text(end + 8, y + 4, f"{name}: {roof:,.0f} Gop/s", "ink")
    highest = max(roof for _, roof in roofs.values())
    x0, y0, x1, y1 = panel.x(0.4), panel.y(0.4 * read), panel.x(highest / read), panel.y(highest)
    picture.add(f'<path class="roof thick" d="M{x0:.1f},{y0:.1f}L{x1:.1f},{y1:.1f}"/>')
    middle, slope = ((x0 + x1) / 2, (y0 + y1) / 2), math.degrees(math.atan2(y1 - y0, x1 - x0))
    picture.text(middle[0], middle[1] - 8, f"memory: {read:.0f} GB/s", "ink", "middle",
                 f' transform="rotate({slope:.1f} {middle[0]:.1f} {middle[1]:.1f})"')
    names = list(dict.fromkeys(r["kernel"] for r in results if "rung" not in r))
    for series, name in enumerate(names):
        points = [intensity(r) for r in results if r["kernel"] == name and "rung" not in r]
        panel.line(series, points, "")
        picture.text(94, 354 + 18 * series, name, f"fill{series}")
        panel.marker(series, 84, 350 + 18 * series)
    for record in results:
        if record.get("rung", 9) <= 4 and record["rows"] > 1:
            across, up = intensity(record)
            x, y = panel.x(across), panel.y(up)
            picture.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="line0" fill="none"/>')
            panel.label(0, x, y + (16 if record["rung"] == 4 else 0), f"{record['rung']} {record['kernel']}")
    panel.finish()
    return picture.svg()


def intensity(record):
    """(operations for each byte of weights, Gop/s)"""
    operations = record["operations_per_second"] * record["seconds"]
    return operations / record["weight_bytes"], record["operations_per_second"] * 1e-9


def rates(record):
    """(tokens a second, the lowest, the highest)"""
    tokens = (record["prompt"] + record["generate"]) * record["batch"]
    values = [tokens / seconds for seconds in record["seconds"]]
    return statistics.median(values), min(values), max(values)


def tokens(threads, depth, batch):
    picture = Picture(860, 700, f"SmolLM2-135M; {note(threads)}")
    wanted = [
        ("A prompt of 512 tokens", [r for r in threads["results"] if r["prompt"]], "threads", "model"),
        ("Generating", [r for r in threads["results"] if r["generate"]], "threads", "model"),
        ("Generating after a long text, Q8_0", depth["results"], "depth", "kv_type"),
        ("Generating several sequences, in all", batch["results"], "batch", "model"),
    ]
    axis_titles = {"threads": "threads", "depth": "tokens of text", "batch": "sequences side by side"}
    for i, (title, results, across, by) in enumerate(wanted):
        x_values = sorted({r[across] for r in results})
        y_axis = Linear(max(rates(r)[2] for r in results))
        x_axis = Linear(x_values[-1], ([0] if x_values[0] else []) + x_values)
        box = (70 + 430 * (i % 2), 60 + 335 * (i // 2), 290, 225)
        panel = Panel(picture, box, title, x_axis, y_axis, axis_titles[across], "tokens/s")
        for series, name in enumerate(dict.fromkeys(r[by] for r in results)):
            points = [(r[across], *rates(r)) for r in results if r[by] == name]
            panel.line(series, points, f"cache {name}" if by == "kv_type" else name)
        panel.finish()
    return picture.svg()


# ---- the tables ---------------------------------------------------------------------------------


def pairs(operators):
    """The two records of each kernel: many rows, and one."""
    records = [r for r in operators["results"] if "rung" in r]
    return list(zip(records[::2], records[1::2]))


def ladder_table(operators):
    lines = ["| | rung | 512 x 1536 x 576 | of the ceiling | 1 x 49152 x 576 |", "|---|---|---|---|---|"]
    for many, one in pairs(operators):
        rate, share = many["operations_per_second"] * 1e-9, many["operations_per_second"] / many["operation_ceiling"]
        lines.append(f"| {many['rung']} | {many['kernel']} | {rate:,.{1 if rate < 10 else 0}f} Gop/s | {share:.0%} "
                     f"| {one['weight_bytes'] / one['seconds'] * 1e-9:.0f} GB/s |")
    read = operators["results"][0]["read_ceiling"] * 1e-9
    return "\n".join([*lines, "", f"{note(operators)}; memory read {read:.1f} GB/s on one core in that run."])


def with_table(path, name, table):
    """The page, with this table between the comments that hold its place."""
    place = re.compile(f"(<!-- {name}: by make_plots.py -->\n).*?(<!-- end -->)", re.DOTALL)
    text, found = place.subn(lambda match: f"{match[1]}{table}\n{match[2]}", path.read_text(encoding="utf-8"))
    if found != 1:
        raise SystemExit(f"{path.name}: expected one place for the table '{name}', found {found}")
    return text


def made():
    """What this script writes, by name: a test holds the repository's to it."""
    data = {name: json.loads((MEASUREMENTS / f"{name}.json").read_text(encoding="utf-8")) for name in MEASURE}
    return {
        "roofline.svg": roofline(data["operators"]),
        "tokens.svg": tokens(data["threads"], data["depth"], data["batch"]),
        "kernels.md": with_table(DOCS / "kernels.md", "ladder", ladder_table(data["operators"])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="*", choices=MEASURE, metavar="WHAT", help=", ".join(MEASURE))
    names = parser.parse_args().measure
    if names is not None:
        measure(names or MEASURE)
    for name, text in made().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
