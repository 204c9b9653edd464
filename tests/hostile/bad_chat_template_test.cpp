// The error message for a chat template that is wrong or does something wrong: one line, printed
// after a short time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <ostream>

#include "tests/hostile/rows.h"
#include "tests/hostile/run_limited.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

// A model with these files in its folder. The message leaves out the folder's path.
struct BadTemplate {
  std::string name;
  std::map<std::string, Contents> files;
  std::string message;
};

void PrintTo(const BadTemplate& row, std::ostream* out) { *out << row.name; }

const std::string kFile = "chat_template.jinja";
const std::string kConfig = "tokenizer_config.json";

std::string repeated(const std::string& text, std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += text;
  return all;
}

BadTemplate jinja(const std::string& name, const Contents& source, const std::string& message) {
  return {name, {{kFile, source}}, kFile + ": " + message};
}
BadTemplate config(const std::string& name, const std::string& json, const std::string& message) {
  return {name, {{kConfig, json}}, kConfig + ": " + message};
}

// Repeats `text` n times, with "{}" replaced by 0, 1, 2 ...
std::string numbered(const std::string& text, std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += fmt::format(fmt::runtime(text), i);
  return all;
}

const std::string kLong = "{% set s = ('a' * 1000) * 10000 %}";
std::string often(const std::string& body) {
  return "{% for i in range(99999) %}" + body + "{% endfor %}";
}
// The template runs to its end in a short time.
const std::string kDone = "{{ raise_exception('done') }}";
const std::string kIsDone = "line 1: the template refuses: done";

const std::string kTooDeep = "stopped: more than 300 nested calls and expressions";
const std::string kTooLong = "stopped: the template takes more than 10000000 steps";
const std::string kTooMuch = "stopped: the template needs more than 128 MiB of memory";

const BadTemplate kBadTemplates[] = {
    // Files.
    {"is_empty", {{kFile, ""}}, "chat_template.jinja: expected a template, found nothing"},
    {"is_2_MB",
     {{kFile, [] { return std::string(2'000'000, ' '); }}},
     "chat_template.jinja: expected at most 1048576 bytes, found 2000000"},
    {"is_a_git_lfs_pointer",
     {{kFile, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n"}},
     "chat_template.jinja: is a Git LFS pointer, not the file itself: fetch it with 'git lfs "
     "pull'"},
    jinja("is_not_utf8", "caf\xe9", "expected UTF-8, found the byte 0xe9 at offset 3"),
    config("config_is_cut_short", R"({"chat_template": "x)", "not valid JSON: it ends too early"),
    config("config_is_an_array", "[]", "expected an object, found an array of 0"),
    config("is_a_number", R"({"chat_template": 3})", "'chat_template': expected a string, found 3"),
    config("has_no_default", R"({"chat_template": [{"name": "rag", "template": "x"}]})",
           "'chat_template': expected a template named 'default' or "
           "'tool_use', found rag"),
    config("has_an_error_in_the_one_for_tools",
           R"({"chat_template": [{"name": "tool_use", "template": "{% if %}"},
                                 {"name": "default", "template": "x"}]})",
           "chat_template, tool_use: line 1: expected an expression, found '%}'"),
    config("has_a_number_for_the_one_for_tools",
           R"({"chat_template": [{"name": "tool_use", "template": 3}]})",
           "'template': expected a string, found 3"),
    config("has_an_entry_without_a_name", R"({"chat_template": [{"template": "x"}]})",
           "'chat_template': expected a name and a template in each entry, found an object"),
    config("has_a_number_for_a_token", R"({"chat_template": "x", "bos_token": 1})",
           "'bos_token': expected a string, found 1"),
    config("has_an_error_in_the_config", "{\"chat_template\": \"a\\n{% if %}\"}",
           "chat_template: line 2: expected an expression, found '%}'"),

    // Syntax.
    jinja("has_an_open_expression", "a\n{{ 'x'",
          "line 2: expected }}, found the end of the template"),
    jinja("has_an_open_block", "{% if x", "line 1: expected %}, found the end of the template"),
    jinja("has_an_open_comment", "a\n\n{# x",
          "line 3: expected #} at the end of a comment, found none"),
    jinja("has_an_open_string", "{{ 'x }}",
          "line 1: expected ' at the end of a string, found none"),
    jinja("has_an_open_raw", "{% raw %}x", "line 1: expected {% endraw %}, found none"),
    jinja("has_an_open_if", "{% if 1 %}x", "line 1: expected {% endif %}, found 'end of template'"),
    jinja("closes_another_block", "{% if 1 %}x{% endfor %}",
          "line 1: expected a statement, found {% endfor %}"),
    jinja("closes_another_bracket", "{{ (1] }}", "line 1: expected ')', found ']'"),
    jinja("has_a_word_too_many", "{{ a b }}", "line 1: expected }}, found 'b'"),
    jinja("has_an_unknown_sign", "{{ a ? b }}", "line 1: unexpected character '?'"),
    jinja("has_an_unknown_statement", "{% do x %}", "line 1: expected a statement, found {% do %}"),
    jinja("has_a_number_of_200_digits", "{{ " + std::string(200, '9') + " }}",
          "line 1: expected a whole number of 63 bits, found " + std::string(40, '9') + "..."),
    jinja("has_a_hexadecimal_number", "{{ 0x1f }}",
          "line 1: expected a decimal number, found '0x'"),
    jinja("has_half_an_escape", R"({{ '\u12' }})",
          R"(line 1: expected a valid escape sequence, found '\u12')"),
    jinja("has_a_surrogate", R"({{ '\ud83d' }})",
          R"(line 1: expected a valid escape sequence, found '\ud83d')"),
    jinja("breaks_no_loop", "{% break %}",
          "line 1: expected {% break %} inside a loop, found it outside"),

    // Features of Jinja that are not supported.
    jinja("includes_a_file", "{% include '/etc/passwd' %}",
          "line 1: {% include %} is not supported: a chat template is a single file"),
    jinja("imports_a_file", "{% import 'x' as y %}",
          "line 1: {% import %} is not supported: a chat template is a single file"),
    jinja("extends_a_file", "{% extends 'x' %}",
          "line 1: {% extends %} is not supported: a chat template is a single file"),
    jinja("recurses_in_a_loop", "{% for x in y recursive %}{% endfor %}",
          "line 1: {% for ... recursive %} is not supported"),
    jinja("has_an_unknown_filter", "{{ messages | pprint }}",
          "line 1: the filter 'pprint' is not supported"),
    jinja("has_an_unknown_test", "{{ messages is lovely }}",
          "line 1: the test 'lovely' is not supported"),

    // Errors while it runs.
    jinja("refuses_the_conversation", "a\n{{ raise_exception('only\tfish\n') }}",
          R"(line 2: the template refuses: only\x09fish\x0a)"),
    jinja("asks_nothing_for_something", "{{ messages[9].content }}",
          "line 1: '9' of a list is not defined"),
    jinja("adds_a_number_to_a_text", "{{ messages[0].content + 1 }}",
          "line 1: '+': cannot be applied to a string and a number"),
    jinja("calls_a_text", "{{ messages[0].content() }}", "line 1: a string cannot be called"),
    jinja("reaches_for_python", "{{ ''.__class__.__mro__ }}",
          "line 1: '__class__' of a string is not defined"),
    jinja("changes_the_messages", "{{ messages.append(1) }}",
          "line 1: append: a template may not change a list"),
    jinja("divides_by_zero", "{{ 1 // 0 }}", "line 1: '//': division by 0"),
    jinja("computes_a_huge_number", "{{ 9 ** 99 }}",
          "line 1: '**': the result has more than 63 bits"),
    jinja("divides_the_smallest_number", "{{ (-9223372036854775807 - 1) // -1 }}",
          "line 1: '//': the result has more than 63 bits"),
    jinja("asks_for_a_long_date", "{{ strftime_now('%9999Y') }}",
          "line 1: strftime_now: the format gives an empty or too long text"),

    // Endless time or memory.
    jinja("never_ends",
          "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
          "line 1: " + kTooLong),
    jinja("calls_itself", "{% macro f() %}\n{{ f() }}{% endmacro %}{{ f() }}",
          "line 2: " + kTooDeep),
    jinja("wants_a_terabyte", "{{ 'a' * 10 ** 12 }}", "line 1: " + kTooMuch),
    jinja("wants_all_numbers", "{{ range(10 ** 15) }}",
          "line 1: range: expected at most 100000 numbers"),
    jinja("doubles_a_text",
          "{% set n = namespace(s='aa') %}{% for i in range(99) %}"
          "{% set n.s = n.s ~ n.s %}{% endfor %}",
          "line 1: " + kTooMuch),
    jinja("doubles_a_list",
          "{% set n = namespace(s=[1]) %}{% for i in range(99) %}"
          "{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}",
          "line 1: " + kTooLong),
    jinja("piles_lists_up",
          "{% set n = namespace(s=[]) %}{% for i in range(9999) %}"
          "{% set n.s = [n.s] %}{% endfor %}{{ n.s | tojson }}",
          "line 1: " + kTooDeep),
    jinja("prints_without_end",
          "{% set s = 'a' * 10 ** 5 %}{% for i in range(99999) %}{{ s }}{% endfor %}",
          "line 1: " + kTooMuch),
    jinja(
        "nests_brackets_100000_deep", [] { return "{{ " + std::string(100'000, '('); },
        "line 1: expected }}, found the end of the template"),
    jinja("nests_brackets_200_deep", "{{ " + std::string(200, '(') + std::string(200, ')') + " }}",
          "line 1: expressions nested deeper than 100 levels"),
    jinja(
        "nests_blocks_100000_deep", [] { return repeated("{% if 1 %}", 100'000); },
        "line 1: blocks nested deeper than 100 levels"),
    // Much work in a single step.
    jinja("formats_a_long_text_often", kLong + "{{ ('%s' * 100000) % ((s,) * 100000) }}",
          "line 1: " + kTooLong),
    jinja(
        "joins_a_long_text_often", [] { return kLong + "{{ s" + repeated("~s", 100'000) + " }}"; },
        "line 1: " + kTooLong),
    jinja("joins_nothing_with_a_long_text", kLong + often("{{ [] | join(s) }}"),
          "line 1: " + kTooLong),
    jinja("separates_by_a_long_text", kLong + "{{ range(100000) | tojson(separators=(s, s)) }}",
          "line 1: " + kTooMuch),
    jinja(
        "prints_a_long_name_often",
        [] {
          return "{% macro " + std::string(500'000, 'm') + "() %}{% endmacro %}{{ [" +
                 std::string(500'000, 'm') + "] * 1000 }}";
        },
        "line 1: " + kTooMuch),
    jinja("compares_long_prefixes",
          kLong + "{% set a = s ~ 'a' %}{% set b = s ~ 'b' %}" +
              often("{{ a.removeprefix(b) is none }}"),
          "line 1: " + kTooLong),
    jinja("compares_many_prefixes",
          kLong + "{% set a = s ~ 'a' %}{{ a.startswith((s ~ 'b',) * 100000) }}",
          "line 1: " + kTooLong),
    jinja("reads_a_number_of_10_MB", kLong + "{{ s | int }}", "line 1: " + kTooLong),
    jinja(
        "has_100000_parameters",
        [] { return "{% macro f(" + numbered("a{},", 100'000) + "a0) %}"; },
        "line 1: expected a different name for each parameter, found ')'"),
    jinja(
        "has_50000_arguments",
        [] {
          return "{% macro f(" + numbered("a{},", 50'000) + "a) %}{% endmacro %}{{ f(" +
                 numbered("a{}=1,", 50'000) + "a=1) }}";
        },
        "line 1: " + kTooLong),
    jinja(
        "sets_60000_variables", [] { return numbered("{{%set a{}=1%}}", 60'000) + kDone; },
        kIsDone),
    jinja("replaces_between_100000_typed_words",
          "{% set s = (messages[0].content ~ '-') * 100000 %}"
          "{% set s = s.replace('-', '+') %}" +
              kDone,
          kIsDone),
    jinja(
        "adds_100000_times", [] { return "{{ 1" + repeated("+1", 100'000) + " }}"; },
        "line 1: an expression of more than 100 nested operations"),
};

class RefusedTemplate : public testing::TestWithParam<BadTemplate> {};

TEST_P(RefusedTemplate, InOneLineThatSaysWhatIsWrong) {
  const TinyChatModel model;
  const std::string folder = model.folder().string() + "/";
  for (const auto& [file, contents] : GetParam().files) write_file(folder + file, contents());
  const LimitedRun run =
      run_limited({"chat", "--model", model.folder().string(), "-t", "1", "hello"});
  EXPECT_EQ(run.code, 1) << run.ended_by;
  EXPECT_EQ(run.err, "stagecraft: " + folder + GetParam().message + "\n");
  EXPECT_EQ(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(BadChatTemplate, RefusedTemplate, testing::ValuesIn(kBadTemplates),
                         row_name);

TEST(ChatTemplateOption, SaysWhatItTakes) {
  const TinyChatModel model;
  const LimitedRun run = run_limited(
      {"chat", "--model", model.folder().string(), "--chat-template", "lama2", "hello"});
  EXPECT_EQ(run.code, 2) << run.ended_by;
  EXPECT_EQ(run.err,
            "stagecraft: --chat-template: expected a file or one of chatml, llama3, gemma, phi3, "
            "zephyr, mistral, llama2, found 'lama2'\n");
}

}  // namespace
}  // namespace stagecraft
