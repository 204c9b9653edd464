#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "tests/support/comma_locale.h"
#include "tests/support/jinja_values.h"
#include "tests/support/temporary_folder.h"
#include "text/jinja/template.h"

namespace stagecraft {
namespace {

std::string rendered(const std::string& source,
                     const nlohmann::ordered_json& variables = nlohmann::ordered_json::object(),
                     const jinja::Limits& limits = {}) {
  const jinja::Template made(source, "template");
  return made.render(jinja_variables(variables), day_of_the_reference(), limits).bytes();
}

std::string refusal(const std::string& source, const jinja::Limits& limits = {}) {
  try {
    return "rendered: " + rendered(source, nlohmann::ordered_json::object(), limits).substr(0, 200);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Jinja, WritesWhatJinja2WritesAndRefusesWhatItRefuses) {
  const std::string folder = std::string(TEST_DATA) + "/jinja/";
  const nlohmann::ordered_json variables =
      nlohmann::ordered_json::parse(read_file(folder + "variables.json"));
  std::ifstream lines(folder + "cases.jsonl");
  std::size_t n_texts = 0, n_errors = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto test = nlohmann::json::parse(line);
    const std::string source = test["template"].get<std::string>();
    try {
      const std::string text = rendered(source, variables);
      if (test.contains("text")) {
        EXPECT_EQ(text, test["text"].get<std::string>()) << source;
        ++n_texts;
      } else {
        ADD_FAILURE() << source << "\n  expected an Error, found " << text;
      }
    } catch (const Error& error) {
      EXPECT_TRUE(test.contains("error")) << source << "\n  " << error.what();
      ++n_errors;
    }
  }
  EXPECT_GT(n_texts, 750u);
  EXPECT_GT(n_errors, 180u);
}

TEST(Jinja, WritesAndReadsNumbersWithAPointInEveryLocale) {
  const CommaLocale locale;
  if (!locale.is_set()) GTEST_SKIP() << "no locale with a decimal comma";
  EXPECT_EQ(
      rendered("{{ 0.5 }} {{ 1e-7 }} {{ '1.25' | float }} {{ 2.675 | round(2) }} {{ [1.5] }}"),
      "0.5 1e-07 1.25 2.67 [1.5]");
}

TEST(Jinja, RoundsWholeNumbersToPowersOfTenExactly) {
  EXPECT_EQ(rendered("{{ 900000 | round(-5) }} {{ 900000.0 | round(-5) }}"), "900000 900000.0");
  EXPECT_EQ(rendered("{{ 25 | round(-1) }} {{ -15 | round(-1) }} {{ 12345.678 | round(-2) }}"),
            "20 -20 12300.0");
}

TEST(Jinja, NamesTheMissingTextOfIndexHoweverItWasGiven) {
  EXPECT_EQ(refusal("{{ 'abc'.index(sub='z') }}"),
            "template: line 1: index: the string does not contain 'z'");
  EXPECT_EQ(refusal("{{ 'abc'.rfind(1) }}"),
            "template: line 1: rfind: expected a string, found a number");
}

TEST(Jinja, SortsKeysOfJsonAsPythonDoes) {
  EXPECT_EQ(rendered("{{ {10: 1, 9: 2} | tojson(sort_keys=true) }}"), R"({"9": 2, "10": 1})");
  EXPECT_EQ(rendered("{{ {none: 1} | tojson(sort_keys=true) }}"), R"({"null": 1})");
  EXPECT_EQ(refusal("{{ {'a': 1, 2: 3} | tojson(sort_keys=true) }}"),
            "template: line 1: '<': cannot compare a number with a string");
}

TEST(Jinja, ComputesWithTheLargestWholeNumbers) {
  const std::string least = "(-9223372036854775807 - 1)";
  EXPECT_EQ(rendered("{{ " + least + " % 9223372036854775807 }}"), "9223372036854775806");
  EXPECT_EQ(rendered("{{ 9223372036854775807 % " + least + " }}"), "-1");
  EXPECT_EQ(rendered("{{ " + least + " // 9223372036854775807 }}"), "-2");
  EXPECT_EQ(refusal("{{ 1.5 | round(" + least + ") }}"),
            "template: line 1: round: expected a precision of at most 15 digits");
}

// ---- typed text ---------------------------------------------------------------------------------

// Renders `source` with x = `typed` and puts the typed stretches in brackets.
std::string marked(const std::string& source, const std::string& typed) {
  const jinja::Template made(source, "template");
  const MarkedText text = made.render(
      [&](jinja::Runtime& runtime) {
        return std::vector<std::pair<std::string, jinja::Value>>{
            {"x", runtime.text(MarkedText::typed(typed))}};
      },
      day_of_the_reference());
  std::string shown;
  text.for_each_stretch(0, text.size(), [&](std::string_view bytes, bool is_typed) {
    shown += is_typed ? "[" + std::string(bytes) + "]" : std::string(bytes);
  });
  return shown;
}

TEST(Jinja, KnowsWhatWasTypedThroughEverythingATemplateDoesWithIt) {
  EXPECT_EQ(marked("<{{ x }}>", "a"), "<[a]>");
  EXPECT_EQ(marked("{{ 'b' + x + 'c' }}", "a"), "b[a]c");
  EXPECT_EQ(marked("{{ x ~ x ~ 1 }}", "a"), "[aa]1");
  EXPECT_EQ(marked("{{ ('b ' + x + ' ') | trim }}", " a "), "b [ a]");
  EXPECT_EQ(marked("{{ x.strip() }}|{{ x.lstrip() }}|{{ x.rstrip() }}", " a "), "[a]|[a ]|[ a]");
  EXPECT_EQ(marked("{{ x.split('-') | join('+') }}", "a-b"), "[a]+[b]");
  EXPECT_EQ(marked("{{ x.split('-')[-1] }}", "a-b"), "[b]");
  EXPECT_EQ(marked("{{ x.replace('b', '<') }}", "abc"), "[a]<[c]");
  EXPECT_EQ(marked("{{ '<x>'.replace('x', x) }}", "a"), "<[a]>");
  EXPECT_EQ(marked("{{ x[1:] }}{{ x[0] }}{{ x[::-1] }}", "ab"), "[baba]");
  EXPECT_EQ(marked("{{ ('<' ~ x)[:2] }}", "ab"), "<[a]");
  EXPECT_EQ(marked("{{ ('<' ~ x ~ '>') | upper }}", "ab"), "<[AB]>");
  EXPECT_EQ(marked("{{ x | capitalize }}{{ x.title() }}{{ x | lower }}", "ab"), "[AbAbab]");
  EXPECT_EQ(marked("{{ x * 2 }}", "a"), "[aa]");
  EXPECT_EQ(marked("{{ [x, 'b'] }}", "a'"), "[\"[a']\", 'b']");
  EXPECT_EQ(marked("{{ {'k': x} | tojson }}", "a\"<"), "{\"k\": \"[a\\\"<]\"}");
  EXPECT_EQ(marked("{{ x | e }}", "<"), "[&lt;]");
  EXPECT_EQ(marked("{{ '%s!' % x }}", "a"), "[a]!");
  EXPECT_EQ(marked("{{ ('b\n' ~ x) | indent(1) }}", "a"), "b\n [a]");
  EXPECT_EQ(marked("{% for c in x %}{{ c }}.{% endfor %}", "ab"), "[a].[b].");
  EXPECT_EQ(marked("{% set y %}<{{ x }}>{% endset %}{{ y }}", "a"), "<[a]>");
  EXPECT_EQ(marked("{% macro f(m) %}<{{ m }}>{% endmacro %}{{ f(x) }}", "a"), "<[a]>");
  EXPECT_EQ(marked("{% set n = namespace(y='') %}{% set n.y = n.y ~ x %}<{{ n.y }}>", "a"),
            "<[a]>");
  EXPECT_EQ(marked("{{ x.partition('-')[2] }}{{ x.splitlines()[0] }}", "a-b"), "[ba-b]");
  EXPECT_EQ(marked("{{ x | list | last }}{{ x | first }}{{ x | reverse }}", "ab"), "[baba]");
  EXPECT_EQ(marked("{{ 'yes' if x == 'a' else 'no' }}{{ x | length }}", "a"), "yes1");
}

TEST(Jinja, MakesDicts) {
  EXPECT_EQ(rendered("{{ dict(a=1, b='x') | tojson }}{{ dict() }}"), R"({"a": 1, "b": "x"}{})");
  EXPECT_EQ(rendered("{{ dict({'b': 1, 2: 3}, a=4, b=5) }}"), "{'b': 5, 2: 3, 'a': 4}");
  EXPECT_NE(refusal("{{ dict([1]) }}").find("dict: expected a dict, found a list"),
            std::string::npos);
}

// ---- limits -------------------------------------------------------------------------------------

TEST(Jinja, StopsATemplateThatGoesOnForEver) {
  const std::string loops =
      "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}";
  EXPECT_EQ(refusal(loops),
            "template: line 1: stopped: the template takes more than 10000000 steps");
  EXPECT_EQ(refusal("{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}"),
            "template: line 1: stopped: more than 300 nested calls and expressions");
  EXPECT_EQ(refusal("{% macro f() %}{{ caller() }}{% endmacro %}"
                    "{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}"),
            "template: line 1: stopped: more than 300 nested calls and expressions");
}

TEST(Jinja, StopsATemplateThatWantsMoreMemoryThanThereIs) {
  const std::string message =
      "template: line 1: stopped: the template needs more than 128 MiB of memory";
  std::string variables = "{% for i in range(99999) %}{% macro f() %}{% endmacro %}";
  for (int i = 0; i < 20; ++i) variables += fmt::format("{{% set v{} = 1 %}}", i);
  for (const std::string& source : std::vector<std::string>{
           variables + "{% endfor %}", "{{ 'a' * 10 ** 12 }}", "{{ 'a' * 10 ** 18 }}",
           "{{ [1] * 10 ** 9 }}", "{{ ('a' * 10 ** 5) | replace('a', 'b' * 10 ** 5) }}",
           "{{ ('a' * 10 ** 6).replace('', 'b' * 10 ** 5) }}",
           "{{ (['a'] * 10 ** 5) | join('b' * 10 ** 5) }}",
           "{{ ('\\n' * 10 ** 6) | indent(1000, blank=true) }}",
           "{{ ([1] * 10 ** 6) | tojson(indent=1000) }}",
           "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% "
           "endfor %}",
           "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% "
           "endfor %}",
           "{% set s = 'a' * 10 ** 5 %}{% for i in range(99999) %}{{ s }}{% endfor %}"}) {
    EXPECT_EQ(refusal(source), message) << source;
  }
}

TEST(Jinja, StopsWhatNestsTooDeep) {
  const auto repeated = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  constexpr int kMany = 50'000;
  for (const std::string& source :
       std::vector<std::string>{"{{ " + repeated("(", kMany) + " }}",
                                "{{ " + repeated("[", kMany) + " }}",
                                "{{ " + repeated("{1:", kMany) + " }}",
                                "{{ " + repeated("-", kMany) + "1 }}",
                                "{{ " + repeated("not ", kMany) + "1 }}",
                                "{{ 1" + repeated("+1", kMany) + " }}",
                                "{{ 1" + repeated("**1", kMany) + " }}",
                                "{{ a" + repeated(".b", kMany) + " }}",
                                "{{ a" + repeated("[0]", kMany) + " }}",
                                "{{ a" + repeated("|trim", kMany) + " }}",
                                "{{ a" + repeated("()", kMany) + " }}",
                                "{{ 1" + repeated(" if 1 else 1", kMany) + " }}",
                                "{{ 1" + repeated(" if 1", kMany) + " }}",
                                "{{ 1" + repeated(" or 1", kMany) + " }}",
                                "{{ 1" + repeated(" is defined", kMany) + " }}",
                                repeated("{% if 1 %}", kMany),
                                repeated("{% for a in b %}", kMany),
                                repeated("{% macro a() %}", kMany),
                                "{% set " + repeated("(", kMany) + "a = 1 %}",
                                "{% for " + repeated("(", kMany) + "a in 1 %}"}) {
    const std::string said = refusal(source);
    EXPECT_TRUE(said.starts_with("template: line 1: ")) << source.substr(0, 20) << ": " << said;
    EXPECT_LT(said.size(), 200u) << said;
  }
  // Deeply nested values: compared, printed, sorted.
  const std::string tower =
      "{% set n = namespace(a=[], b=[]) %}{% for i in range(9999) %}"
      "{% set n.a = [n.a] %}{% set n.b = [n.b] %}{% endfor %}";
  for (const std::string& use :
       std::vector<std::string>{"{{ n.a }}", "{{ n.a == n.b }}", "{{ n.a < n.b }}",
                                "{{ n.a | tojson }}", "{{ [n.a, n.b] | sort }}"}) {
    EXPECT_EQ(refusal(tower + use),
              "template: line 1: stopped: more than 300 nested calls and expressions")
        << use;
  }
  EXPECT_EQ(rendered("{% set n = namespace() %}{% set n.n = n %}{{ n.n.n is callable }}"), "False");
}

TEST(Jinja, CountsTheWorkInsideOfOneExpression) {
  const jinja::Limits few = {.steps = 100'000};
  for (const std::string& source : std::vector<std::string>{
           "{{ ('a' * 10 ** 6).split('b' * 10 ** 5) }}",
           "{{ ('a' * 10 ** 5 ~ 'b') in 'a' * 10 ** 7 }}", "{{ ('a' * 10 ** 6).count('a') }}",
           "{{ ('a' * 10 ** 6) | upper | length }}", "{{ range(99999) | sort | length }}",
           "{{ range(99999) | unique | list | length }}",
           "{{ range(99999) | map('string') | list | length }}", "{{ ('a ' * 10 ** 6).split() }}",
           "{{ ('a' * 10 ** 6) | list | length }}", "{{ ('a' * 10 ** 6)[::-1] }}"}) {
    EXPECT_EQ(refusal(source, few),
              "template: line 1: stopped: the template takes more than 100000 steps")
        << source;
  }
}

TEST(Jinja, GivesWhatItTakesTimeForARealConversation) {
  // 2,000 messages through a template that reads each message several times stay far below the
  // limits.
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(500, 'a')}});
  }
  const std::string source =
      "{% set ns = namespace(n=0) %}{% for m in messages[::-1] %}{% if m.role == 'user' and "
      "m.content.startswith('a') %}{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}"
      "{% for m in messages %}{{ '<|' + m.role + '|>' + (m.content.split('</think>')[-1] | trim) + "
      "'<|end|>' }}{% endfor %}{{ ns.n }}";
  EXPECT_TRUE(rendered(source, {{"messages", messages}}).ends_with("<|end|>1000"));
}

TEST(Jinja, TellsTheLineOfWhatIsWrong) {
  EXPECT_EQ(refusal("a\n\n{% if %}"), "template: line 3: expected an expression, found '%}'");
  EXPECT_EQ(refusal("a\r\n{{ 1 +\n\n'a' }}"),
            "template: line 2: '+': cannot be applied to a number and a string");
  EXPECT_EQ(refusal("{% macro f(a) %}\n{{ a.b.c }}{% endmacro %}\n\n{{ f(1) }}"),
            "template: line 2: 'b' of a number is not defined");
}

}  // namespace
}  // namespace stagecraft
