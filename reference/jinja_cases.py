"""Small templates for make_jinja.py, each with one feature or one trap; jinja_expressions.txt has
those that are a single expression. No output is written here: it comes from jinja2."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

Json = dict[str, Any]

VARIABLES: Json = {
    "n": 7,
    "zero": 0,
    "minus": -3,
    "half": 0.5,
    "yes": True,
    "no": False,
    "nothing": None,
    "word": "Stage",
    "text": "  to be, or\nnot  to be \t",
    "accents": "Été 你好 🙂 straße",
    "tricky": "a'b\"c\\d<&>\u00a0e\x7f\u200b",
    "empty": "",
    "numbers": [3, 1, 2, 1],
    "words": ["pear", "Apple", "fig"],
    "none_of_it": [],
    "point": {"x": 1, "y": -2.5, "items": "mine", "é": "ü"},
    "people": [
        {"name": "Ann", "age": 41, "tags": ["a", "b"], "pet": {"name": "Rex"}},
        {"name": "bob", "age": 7, "tags": []},
        {"name": "Cy", "age": 41, "tags": ["c"], "admin": True},
    ],
    "messages": [
        {"role": "system", "content": " Be kind. "},
        {"role": "user", "content": "Hi\n"},
        {"role": "assistant", "content": "<think>so</think>\nHello!"},
        {"role": "user", "content": "Bye"},
    ],
}


# Whole templates.
TEMPLATES = [
    # white space
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "a\n  {% if true %}  \n  b\n  {% endif %}  \nc\n\n",
    "a  {% if true %}b{% endif %}  c",
    "  {% if true %}x{% endif %}",
    "  {{ n }}\n  {{ n }}\n",
    "a \n {%- if true -%} \n b \n {%- endif -%} \n c",
    "a \n {{- n -}} \n c",
    "a\n  {%+ if true %}\nb{% endif +%}\nc",
    "a\n  {#- gone -#}\n  b",
    "a\n  {# gone #}\n  b",
    "a {# gone #} b {#+ gone +#}\n c",
    "{# {{ x }} {% if %} #}z",
    "a\r\nb\rc\n\n",
    "\n",
    "\n\n",
    "",
    "{{ '\r\n' }}|{{ 'a\nb' }}",
    "{% if true %}\n\n\nx\n{% endif %}\n\ny",
    "{%- if true %}\n x{% endif -%}\n\n  y",
    "{{ n -}}   \n  x",
    "x   {{- n }}",
    "{% set a = 1 %}\n{% set b = 2 %}\n{{ a + b }}\n",
    "\t{% set a = 1 %}\n\u00a0{% set b = 2 %}\nz",
    "{{ 1 }}{{ 2 }}\n{{ 3 }}",
    "a{% raw %} {{ x }} {% if %} {% endraw %}b",
    "a\n  {%- raw -%}\n {{ x }}\n {%- endraw -%}\n b",
    "{% raw %}\nx\n{% endraw %}\ny",
    "{% raw %}never closed",
    "{{ '}}' }} {{ '%}' }} {% if '%}' %}x{% endif %}",
    "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}}}",
    "{ { } } {x} %} }} #}",
    "{",
    "{{",
    "{%",
    "{# x",
    "{{ }}",
    "{% %}",
    "{{ 1 }",
    "{{ 1 %}",
    "{% if 1 }}x{% endif %}",
    # if
    "{% if zero %}a{% elif n == 7 %}b{% elif 1 / 0 %}c{% else %}d{% endif %}",
    "{% if none_of_it %}a{% else %}b{% endif %}{% if missing %}c{% endif %}",
    "{% if n is defined and n is not none %}a{% endif %}",
    "{% if not n %}a{% else %}{% if n > 3 %}b{% endif %}{% endif %}",
    "{% if n, %}x{% endif %}",
    "{% if %}x{% endif %}",
    "{% if 1 %}x",
    "{% if 1 %}x{% endfor %}",
    "{% else %}",
    "{% endif %}",
    "{% elif x %}",
    "{% if 1 %}a{% else %}b{% else %}c{% endif %}",
    # for
    "{% for x in numbers %}{{ x }}{% endfor %}",
    "{% for x in numbers %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}"
    "{% endfor %}",
    "{% for x in numbers %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}"
    "{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in numbers %}[{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }}]{% endfor %}",
    "{% for x in numbers %}{{ loop.previtem is defined }}{{ loop.nextitem.y is defined }}"
    "{% endfor %}",
    "{% for x in numbers %}{{ loop.nosuch }}{% endfor %}",
    "{% for x in none_of_it %}a{% else %}b{% endfor %}",
    "{% for x in numbers if x > 9 %}a{% else %}b{% endfor %}",
    "{% for x in numbers if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{% endfor %}",
    "{% for x in missing %}a{% else %}b{% endfor %}",
    "{% for x in nothing %}a{% endfor %}",
    "{% for x in 3 %}a{% endfor %}",
    "{% for c in accents %}{{ c }}.{% endfor %}",
    "{% for k in point %}{{ k }} {% endfor %}",
    "{% for k, v in point.items() %}{{ k }}={{ v }} {% endfor %}",
    "{% for k, v in point | dictsort %}{{ k }}={{ v }} {% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [1, 2] %}{{ a }}{% endfor %}",
    "{% for a, b in ['xy', 'zw'] %}{{ a }}{{ b }};{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in [1, 2] + [3] %}{{ x }}{% endfor %}",
    "{% for x in numbers[1:] | reverse %}{{ x }}{% endfor %}",
    "{% for x in numbers %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in numbers %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in numbers %}{% for y in words %}{{ x }}{{ y[0] }}{% break %}{% endfor %};"
    "{% endfor %}",
    "{% break %}",
    "{% for x in numbers %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in numbers %}{{ x }}{% else %}{% break %}{% endfor %}",
    "{% for x in numbers %}{{ x }}{% break %}{% else %}b{% endfor %}",
    "{% for x in numbers %}{{ x }}{% continue %}{% else %}b{% endfor %}",
    "{% for x in numbers %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}b{% endfor %}",
    "{% for x in numbers %}{% if x == 1 %}{% continue %}{% endif %}{% else %}b{% endfor %}",
    "{% for x in words %}{% for y in words %}{% break %}{% else %}{% break %}{% endfor %}b{% endfor %}",
    "{% if numbers | select('gt', 9) %}a{% else %}b{% endif %}",
    "{% if people | selectattr('none') | list %}a{% else %}b{% endif %}",
    "{{ 'a' if none_of_it | map('upper') else 'b' }}{{ 'a' if none_of_it | reverse else 'b' }}",
    "{{ 'a' if none_of_it | unique else 'b' }}{{ 'a' if {} | items else 'b' }}",
    "{{ 'a' if none_of_it | reject else 'b' }}{{ 'a' if none_of_it | sort else 'b' }}",
    "{{ 'a' if '' | reverse else 'b' }}{{ 'a' if missing | map('upper') else 'b' }}",
    "{% for x in numbers %}{% set y = x %}{% endfor %}{{ y }}",
    "{% set y = 0 %}{% for x in numbers %}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}",
    "{% set x = 'out' %}{% for x in numbers %}{{ x }}{% endfor %}{{ x }}",
    "{% for x in numbers %}{{ loop.index }}{% for x in words %}{{ loop.index }}{% endfor %}"
    "{{ loop.index }};{% endfor %}",
    "{{ loop }}",
    "{{ loop.index }}",
    "{% for x in numbers %}",
    "{% for in numbers %}{% endfor %}",
    "{% for x of numbers %}{% endfor %}",
    "{% for x.y in numbers %}{% endfor %}",
    "{% for 1 in numbers %}{% endfor %}",
    "{% for true in numbers %}{% endfor %}",
    "{% for x in numbers %}{% endfor x %}",
    "{% for m in messages %}{{ m.role }}:{{ m['content'] | trim }};{% endfor %}",
    "{% for m in messages if m.role != 'system' %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('alternate') }}{% endif %}{{ m.content }}{% endfor %}",
    "{% for m in messages[1:] %}{% if (m.role == 'user') == (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('alternate: ' + m.role) }}{% endif %}{% endfor %}",
    "{% for m in messages %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}|{% endfor %}",
    "{% for m in messages[::-1] %}{{ (messages | length - 1) - loop.index0 }}{{ m.role[0] }}"
    "{% endfor %}",
    # set
    "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [1, 2, 3] %}",
    "{% set (a, b) = 'xy' %}{{ b }}{{ a }}",
    "{% set a, = [1] %}{{ a }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]{{ x is string }}",
    "{% set x | upper | replace('A', 'b') %}a{{ n }}{% endset %}{{ x }}",
    "{% if true %}{% set x = 1 %}{% endif %}{{ x }}",
    "{% if false %}{% set x = 1 %}{% endif %}{{ x }}{{ x is defined }}",
    "{% set n = n + 1 %}{{ n }}",
    "{% set ns = namespace(found=false) %}{% for x in numbers %}{% if x == 2 %}"
    "{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}",
    "{% set ns = namespace(a='x') %}{% for w in words %}{% set ns.a = ns.a ~ w %}"
    "{% endfor %}{{ ns.a }}",
    "{% set ns = namespace(a=1) %}{{ ns['a'] }}{{ ns.b is defined }}{{ ns.b }}",
    "{% set ns = namespace(_a=1) %}",
    "{% set ns = namespace() %}{% set ns._a = 1 %}",
    "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}",
    "{% set point.x = 5 %}",
    "{% set q.x = 5 %}",
    "{% set word.x = 5 %}",
    "{% set x[0] = 5 %}",
    "{% set 1 = 5 %}",
    "{% set true = 5 %}",
    "{% set none = 5 %}",
    "{% set x = %}",
    "{% set = 1 %}",
    "{% set x 1 %}",
    "{% set range = 3 %}{{ range }}",
    "{{ x }}{% set x = 1 %}",
    "{% set l = [] %}{% set l = l + [1] %}{{ l }}",
    "{% set l = [] %}{% set _ = l.append(1) %}{{ l }}",
    # with
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a is defined }}",
    "{% set a = 3 %}{% with a = a + 1 %}{{ a }}{% endwith %}{{ a }}",
    "{% with a = 1, b = a %}{{ b }}{% endwith %}",
    # macro, call, filter, generation
    "{% macro f(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f(1, 3) }}"
    "{{ f(b=4, a=5) }}{{ f() }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}",
    "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}",
    "{% macro f(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ f(1, 2, 3) }}{{ f() }}",
    "{% macro f(a, b=a) %}{{ b }}{% endmacro %}{{ f(1) }}",
    "{% macro f(a=1, b) %}{% endmacro %}",
    "{% macro f(a, a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f() %}{{ n }}{{ late }}{% endmacro %}{% set late = 5 %}{{ f() }}",
    "{% macro f() %}{% set x = 1 %}{% endmacro %}{{ f() }}{{ x is defined }}",
    "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% macro f() %} x {% endmacro %}{{ f() | trim | length }}{{ f() is string }}",
    "{% macro f() %}x{% endmacro %}{{ f }}"[:-7] + "{{ f is callable }}",
    "{{ f() }}{% macro f() %}x{% endmacro %}",
    "{% if true %}{% macro f() %}x{% endmacro %}{% endif %}{{ f() }}",
    "{% for x in numbers %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% for x in numbers %}{% macro f() %}{% endmacro %}{% endfor %}{{ f is defined }}",
    "{% macro f(x) %}<{{ caller() }}{{ x }}>{% endmacro %}{% call f(1) %}in{% endcall %}",
    "{% macro f() %}{% for x in numbers %}{{ caller(x) }}{% endfor %}{% endmacro %}"
    "{% call(y) f() %}[{{ y }}]{% endcall %}",
    "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}",
    "{% macro f() %}x{% endmacro %}{% call f() %}in{% endcall %}",
    "{% call 3 %}{% endcall %}",
    "{% macro f() %}x{% endcall %}",
    "{% macro 1() %}x{% endmacro %}",
    "{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}\n{% endfor %}",
    "{% generation %}{% set x = 1 %}{{ x }}{% endgeneration %}{{ x is defined }}",
    "{% generation %}",
    # undefined names and unknown tags
    "{% nosuch %}",
    "{% 1 %}",
    "{% if 1 %}{% nosuch %}{% endif %}",
    "{% do numbers %}",
    "{{ 1 }} }} {{ 2 }}",
    "{% set x = 1 %} {{ x }} {% set x = 'é' %} {{ x }}",
    "{{ 'a'|upper }}{{ 'b' | upper|lower }}{{'c'}}{{-'d'-}}{{- 'e' -}}",
    "{{messages[0]['role']}}{{messages[0].role=='system'}}",
    "{%if messages[0]['role']=='system'%}{{messages[0]['content']}}{%endif%}",
    "{%- for m in messages -%}\n"
    "{{- '<|' + m.role + '|>\\n' + m.content | trim + '<|end|>\\n' -}}\n{%- endfor -%}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(';') }}",
    "{{ (messages | selectattr('role', 'equalto', 'user') | list)[-1].content }}",
    "{{ (messages | selectattr('role', 'ne', 'user') | list | length) > 1 }}",
    "{% set last = (messages | last) %}{{ last.role }}{{ last['content'] }}",
    "{% set loop_messages = messages[1:] if messages[0].role == 'system' else messages %}"
    "{{ loop_messages | length }}",
    "{{ bos_token }}{% if bos_token is defined %}x{% endif %}",
    "{{ people | map(attribute='tags') | list | tojson }}",
    "{% for p in people %}{{ p.tags | join(' ') or 'none' }},{% endfor %}",
    "{{ 'x' if people[0].tags else 'y' }}{{ 'x' if people[1].tags else 'y' }}",
    # filter
    "{% filter upper %}a{{ word }}{% endfilter %}b",
    "{% filter trim | upper %} x\n {% endfilter %}",
    "{% filter replace('a', 'b') %}banana {{ text }}{% endfilter %}",
    "{% for m in messages %}{% filter upper %}{{ m.role }}{% endfilter %},{% endfor %}",
    "{% filter upper %}{% filter replace('A', 'b') %}Aa{% endfilter %}{% endfilter %}",
    "{% filter upper %}{% set y = 1 %}{% endfilter %}{{ y is defined }}",
    "{% filter %}x{% endfilter %}",
    "{% filter upper %}x",
    "{% filter nosuch %}x{% endfilter %}",
    "{% filter length %}abc{% endfilter %}",
]

# Each of these filters is applied to each value, including values that it is not made for.
FILTERS = ("upper", "title", "trim", "length", "first", "list", "int", "string", "tojson",
           "default(1)", "join")  # fmt: skip
TESTED = ("defined", "none", "string", "number", "mapping", "iterable", "sequence", "true")
VALUES = ("missing", "none", "true", "7", "2.50", "'a b'", "''", "[]", "[1, 'x']", "(1,)",
          "{}", "{'k': 1}")  # fmt: skip


def expressions() -> list[str]:
    """The expressions, one per line; a backslash at the end of a line continues it."""
    text = (Path(__file__).parent / "jinja_expressions.txt").read_text()
    return re.split(r"(?<!\\)\n", text.rstrip("\n"))


def templates() -> list[str]:
    made = [f"{{{{ {expression} }}}}" for expression in expressions()]
    made += [f"{{{{ {value} | {name} }}}}" for value, name in product(VALUES, FILTERS)]
    made += [f"{{{{ {value} is {name} }}}}" for value, name in product(VALUES, TESTED)]
    made += [f"{{{{ {a} == {b} }}}}" for a, b in product(VALUES, VALUES)]
    return list(dict.fromkeys(made + TEMPLATES))
