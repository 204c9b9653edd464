"""The page of a class: one file without scripts or anything from elsewhere, for the teacher alone. Ids, no
names; whatever students wrote is shown as text."""
import collections
import html
import statistics

import course
import feedback
import marks
import report

BINS = 10
SIGNS = {"passed": "\N{CHECK MARK}", "slow": "\N{CHECK MARK}", "unjudged": "?", "unmeasured": "?", "begun": "\N{HORIZONTAL ELLIPSIS}", "unwritten": "\N{MIDDLE DOT}"}
ORDER = ("passed", "begun", "wrong", "crashed", "hung", "uncompiled", "refused", "unwritten")
KIND = {"slow": "passed", "unjudged": "unwritten", "unmeasured": "unwritten", "crashed": "wrong", "hung": "wrong", "refused": "uncompiled"}  # four colours are enough
STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1c1e21; --soft: #5f6670; --line: #d9dce1;
  --passed: #2c8a57; --begun: #c79a1b; --wrong: #c8452f; --uncompiled: #7a4fb5; --unwritten: #b9bec6; }
@media (prefers-color-scheme: dark) { :root { --back: #15171a; --ink: #e6e8eb; --soft: #9aa1ab;
  --line: #33383f; --passed: #4fb57f; --begun: #d9b24a; --wrong: #e5725e; --uncompiled: #a582d8;
  --unwritten: #4a5058; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } .soft, small { color: var(--soft); } ol, ul { margin: 0; padding-left: 1.4rem; }
li { margin: .35rem 0; } table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; } th, td { padding: .2rem .5rem; border-bottom: 1px solid var(--line);
  vertical-align: top; } .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; margin: 1rem 0; }
.tiles b { display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }
svg { width: 100%; max-width: 40rem; height: auto; display: block; }
.bar { display: flex; height: 1rem; min-width: 14rem; } .bar i { display: block; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 .9rem; }
.passed { background: var(--passed); } .begun { background: var(--begun); } .wrong { background: var(--wrong); }
.uncompiled { background: var(--uncompiled); } .unwritten { background: var(--unwritten); }
td.t-passed { color: var(--passed); } td.t-begun { color: var(--begun); } td.t-wrong { color: var(--wrong); }
td.t-uncompiled { color: var(--uncompiled); } td.t-unwritten { color: var(--soft); }
.ids { overflow-wrap: anywhere; } a { color: inherit; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } h2 { break-after: avoid; }
  tr, li, svg { break-inside: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def text(value):
    return html.escape(report.plain(str(value)))


def say(key, *values):
    return text(course.say(key, *values))


def linked(ids):
    """A line of ids, each a link to what its student reads."""
    return ", ".join(f'<a href="feedback/{text(id)}.md">{text(id)}</a>' for id in ids)


def kind(status):
    status = KIND.get(status, status)
    return status if status in ORDER else "wrong"


# ---- parts --------------------------------------------------------------------------------------


def tiles(records, points):
    graded = [record.mark for record in records if record.result]
    figures = [("class_students", len(records)), ("class_n_graded", len(graded))]
    if graded:
        figures += [("class_mean", f"{statistics.mean(graded):.1f}"),
                    ("class_median", marks.number(statistics.median(graded))), ("where_total", points)]
    figures.append(("class_n_late", sum(record.days_late > 0 for record in records)))
    cells = "".join(f"<div><b>{text(value)}</b>{say(key)}</div>" for key, value in figures)
    yield f'<div class="tiles">{cells}</div>'


def distribution(records, points):
    """Columns of how many have so many points."""
    counts = [0] * BINS
    for record in records:
        if record.result:
            counts[min(int(record.mark * BINS / points), BINS - 1)] += 1
    top = max(counts) or 1
    yield f"<h2>{say('class_distribution')}</h2>"
    yield f'<svg viewBox="0 0 640 190" role="img" aria-label="{say("class_distribution")}">'
    for at, count in enumerate(counts):
        height = 140 * count / top
        yield (f'<rect x="{at * 64 + 4}" y="{160 - height:.1f}" width="56" height="{height:.1f}" '
               'fill="var(--passed)"/>'
               f'<text x="{at * 64 + 32}" y="{152 - height:.1f}" font-size="14" text-anchor="middle" '
               f'fill="var(--ink)">{count or ""}</text>'
               f'<text x="{at * 64 + 32}" y="178" font-size="12" text-anchor="middle" fill="var(--soft)">'
               f"{round(at * points / BINS)}\N{EN DASH}{round((at + 1) * points / BINS)}</text>")
    yield "</svg>"


def common_mistakes(records, stages):
    """What is wrong, by how many it is wrong with: what to teach tomorrow."""
    who = collections.defaultdict(set)
    for record in records:
        for entry in record.result["stages"] if record.result else ():
            names = {group["mistake"] for group in entry["groups"] if group["mistake"]}
            if entry["failed"] and entry["status"] != "refused":
                for name in names or {entry["status"]}:
                    who[entry["id"], name, bool(names)].add(record.id)
    known = {stage.id: course.mistakes(stage) for stage in stages}
    yield f"<h2>{say('class_teach')}</h2>"
    if not who:
        yield f"<p>{say('class_no_mistakes')}</p>"
        return
    yield "<ol>"
    by_number = sorted(who.items(), key=lambda one: (not one[0][2], -len(one[1]), one[0]))  # what is known first
    for (stage, name, is_known), ids in by_number:
        sentence = (known[stage].get(name, {}).get(course.language(), name) if is_known
                    else course.say("class_unknown_mistake") if name == "wrong" else course.say(f"grade_{name}"))
        yield (f"<li><b>{len(ids)}</b> · {say('where_stage')} {stage} · {text(sentence)}<br>"
               f'<small class="ids">{linked(sorted(ids))}</small></li>')
    yield "</ol>"


def progress(records, stages):
    """Stage by stage: how many are where, and who is stuck since when."""
    yield f"<h2>{say('class_stages')}</h2>"
    key = "".join(f'<i class="{name}"></i>{say(f"grade_{name}")}'
                  for name in ("passed", "begun", "wrong", "uncompiled", "unwritten"))
    yield f'<p class="key soft">{key}</p>'
    yield (f"<table><tr><th></th><th>{say('where_stage')}</th><th>{say('class_where')}</th>"
           f"<th>{say('class_stuck')}</th></tr>")
    n = sum(record.result is not None for record in records) or 1
    for at, stage in enumerate(stages):
        counts, stuck = collections.Counter(), []
        for record in records:
            if not record.result:
                continue
            entry = record.result["stages"][at]
            counts[kind(entry["status"])] += 1
            if entry["failed"]:
                stuck.append((record.started[stage.id], record.id))
        bars = "".join(f'<i class="{name}" style="width:{100 * counts[name] / n:.2f}%" '
                       f'title="{say(f"grade_{name}")}: {counts[name]}"></i>' for name in ORDER if counts[name])
        since = ", ".join(f"{linked([id])}{f' ({at:%m-%d})' if at else ''}"
                          for at, id in sorted(stuck, key=lambda one: (str(one[0]), one[1])))
        yield (f'<tr><td class="n">{stage.id}</td><td>{text(stage.title[course.language()])}<br>'
               f'<small>{counts["passed"]} / {n}</small></td><td><div class="bar">{bars}</div></td>'
               f'<td class="ids"><small>{since}</small></td></tr>')
    yield "</table>"


def alike(found):
    if not found:
        return
    yield f"<h2>{say('class_alike')}</h2><p class=\"soft\">{say('class_alike_says')}</p><ul>"
    for _, name, share, ids in found:
        yield f"<li><code>{text(name)}</code> · {100 * share:.0f}% · {linked(ids)}</li>"
    yield "</ul>"


def troubles(records, rules):
    """Whom the teacher has to write to."""
    lines = []
    for record in records:
        if record.ungraded:
            lines.append((record.id, course.say("class_ungraded", record.ungraded)))
        elif record.problem:
            lines.append((record.id, course.say("class_not_pulled", record.problem)))
        elif record.result and not record.result["confined"]:
            lines.append((record.id, course.say("grade_not_confined", record.result["not_confined_because"])))
        for one in record.stages:
            if one.mark and one.days:
                lines.append((record.id, f"{one.stage.id}: {feedback.lateness(one, rules)}"))
    if lines:
        yield f"<h2>{say('class_troubles')}</h2><ul>"
        yield from (f"<li>{linked([id])}: {text(line)}</li>" for id, line in lines)
        yield "</ul>"


def everyone(records, stages):
    yield f"<h2>{say('class_everyone')}</h2><table><tr><th></th><th class=\"n\">{say('where_points')}</th>"
    yield "".join(f'<th class="n">{stage.id}</th>' for stage in stages)
    yield f"<th>{say('class_last_seen')}</th></tr>"
    for record in records:
        yield f'<tr><td class="ids">{linked([record.id])}</td>'
        yield f'<td class="n"><b>{marks.number(record.mark)}</b></td>'
        for one in record.stages:
            sign = SIGNS.get(one.status, "\N{BALLOT X}")
            mark = "" if one.status == "unwritten" else f" {marks.number(one.mark)}"
            late = "\N{WATCH}" if one.mark and one.days else ""
            yield (f'<td class="n t-{kind(one.status)}" title="{say(f"grade_{one.status}")}">'
                   f"{sign}{mark}{late}</td>")
        last = feedback.when(record.newest.at) if record.newest else "-"
        yield f"<td><small>{text(last)}</small></td></tr>"
    yield "</table>"


def page(run, found_alike):
    """The lines of the page. run: of ./stage class grade. found_alike: of likeness.look_at_these."""
    records, stages, rules = run.records, run.stages, run.rules
    points = sum(stage.points for stage in stages)
    title = course.say("class_title", len(records))
    commit = (next((record.result for record in records if record.result), {}).get("official", {}).get("commit")
              or "-")[:10]
    yield f'<!doctype html>\n<html lang="{course.language()}"><head><meta charset="utf-8">'
    yield ("<meta http-equiv=\"Content-Security-Policy\" "
           "content=\"default-src 'none'; style-src 'unsafe-inline'\">")
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{text(title)}</title><style>{STYLE}</style></head><body>"
    yield f"<h1>{text(title)}</h1>"
    yield f'<p class="soft">{say("class_by", feedback.when(run.at), commit, run.seed)}</p>'
    for part in (tiles(records, points), distribution(records, points), common_mistakes(records, stages),
                 progress(records, stages), alike(found_alike), troubles(records, rules),
                 everyone(records, stages)):
        yield from part
    yield "</body></html>"
