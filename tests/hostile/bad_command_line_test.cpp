// The error message for a wrong command line, or for text and numbers that cannot work.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/hostile/bad_model.h"
#include "tests/hostile/rows.h"
#include "tests/hostile/run_limited.h"

namespace stagecraft {
namespace {

// "a" is a token of the tiny model. The id of "b" is beyond its 65 tokens.
constexpr std::string_view kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 70}, "merges": []}})";

// A row: the command line, its exit code and its message. In both texts, TINY stands for the
// model's folder.
struct BadCommand {
  std::string name;
  std::vector<std::string> arguments;
  int code;
  std::string message;
};

void PrintTo(const BadCommand& row, std::ostream* out) { *out << row.name; }

BadCommand story(std::string name, std::vector<std::string> arguments, int code,
                 std::string message) {
  arguments.insert(arguments.begin(), {"story", "--model", "TINY"});
  return {std::move(name), std::move(arguments), code, std::move(message)};
}

const BadCommand kBadCommands[] = {
    // Commands.
    {"no_command", {}, 2, "expected a command; 'stagecraft --help' lists them"},
    {"unknown_command", {"storey"}, 2, "unexpected command 'storey'; see 'stagecraft --help'"},
    {"unknown_option_before_a_command",
     {"--seed"},
     2,
     "unexpected option '--seed'; see 'stagecraft --help'"},
    {"unknown_option",
     {"story", "--temprature", "1"},
     2,
     "unexpected option '--temprature'; see 'stagecraft story --help'"},
    {"argument_too_many",
     {"story", "once", "upon"},
     2,
     "unexpected argument 'upon'; see 'stagecraft story --help'"},
    {"argument_that_is_broken_utf8",
     {"story", "--\xff\n"},
     2,
     "unexpected option '--\\xff\\x0a'; see 'stagecraft story --help'"},

    // Values.
    {"value_missing", {"story", "--model"}, 2, "--model: expected a value (PATH), found none"},
    {"value_of_a_flag",
     {"story", "--print-ids=maybe"},
     2,
     "--print-ids: expected no value, found 'maybe'"},
    {"value_missing_of_the_last_of_two",
     {"story", "--top-k", "1", "--top-k"},
     2,
     "--top-k: expected a value (K), found none"},
    {"list_missing", {"bench", "-p"}, 2, "--prompt: expected a value (N,N), found none"},
    {"wrong_value_before_a_right_one",
     {"story", "--seed", "x", "--seed", "2"},
     2,
     "--seed: expected a whole number from 0 to 18446744073709551615, found "
     "'x'"},
    {"prompt_given_twice",
     {"story", "Once", "-p", "Twice"},
     2,
     "--prompt: expected one value, found 2"},
    {"help_about_what_is_no_command",
     {"help", "storey"},
     2,
     "unexpected command 'storey'; see 'stagecraft --help'"},
    {"model_empty", {"story", "--model", ""}, 2, "--model: expected a path, found ''"},
    story("threads_0", {"--threads", "0"}, 2,
          "--threads: expected a whole number from 1 to 256, found '0'"),
    story("threads_negative", {"--threads", "-2"}, 2,
          "--threads: expected a whole number from 1 to 256, found '-2'"),
    story("threads_257", {"--threads", "257"}, 2,
          "--threads: expected a whole number from 1 to 256, found '257'"),
    story("threads_fractional", {"--threads", "1.5"}, 2,
          "--threads: expected a whole number from 1 to 256, found '1.5'"),
    story("threads_in_words", {"--threads", "two"}, 2,
          "--threads: expected a whole number from 1 to 256, found 'two'"),
    story("threads_empty", {"--threads", ""}, 2,
          "--threads: expected a whole number from 1 to 256, found ''"),
    story("threads_octal", {"--threads", "010"}, 2,
          "--threads: expected a whole number from 1 to 256, found '010'"),
    story("max_tokens_0", {"--max-tokens", "0"}, 2,
          "--max-tokens: expected a whole number from 1 to 10000000, found '0'"),
    story("max_tokens_beyond_64_bits", {"-n", "99999999999999999999"}, 2,
          "--max-tokens: expected a whole number from 1 to 10000000, found '99999999999999999999'"),
    story("max_tokens_with_a_newline", {"-n", "5\n"}, 2,
          "--max-tokens: expected a whole number from 1 to 10000000, found '5\\x0a'"),
    story("context_0", {"--context", "0"}, 2,
          "--context: expected a whole number from 1 to 10000000, found '0'"),
    story("context_1e9", {"--context", "1000000000"}, 2,
          "--context: expected a whole number from 1 to 10000000, found '1000000000'"),
    story("temperature_negative", {"--temperature", "-0.1"}, 2,
          "--temperature: expected a number from 0 to 100, found '-0.1'"),
    story("temperature_nan", {"--temperature", "nan"}, 2,
          "--temperature: expected a number from 0 to 100, found 'nan'"),
    story("temperature_infinite", {"--temp", "inf"}, 2,
          "--temperature: expected a number from 0 to 100, found 'inf'"),
    story("temperature_beyond_a_double", {"--temp", "1e999"}, 2,
          "--temperature: expected a number from 0 to 100, found '1e999'"),
    story("temperature_with_a_unit", {"--temp", "0.8x"}, 2,
          "--temperature: expected a number from 0 to 100, found '0.8x'"),
    story("top_k_negative", {"--top-k", "-1"}, 2,
          "--top-k: expected a whole number from 0 to 10000000, found '-1'"),
    story("top_p_above_1", {"--top-p", "1.01"}, 2,
          "--top-p: expected a number from 0 to 1, found '1.01'"),
    story("top_p_nan", {"--top-p", "NaN"}, 2,
          "--top-p: expected a number from 0 to 1, found 'NaN'"),
    story("repeat_penalty_0", {"--repeat-penalty", "0"}, 2,
          "--repeat-penalty: expected a number from 0.01 to 100, found '0'"),
    story("repeat_last_n_negative", {"--repeat-last-n", "-64"}, 2,
          "--repeat-last-n: expected a whole number from 0 to 10000000, found '-64'"),
    story("seed_negative", {"--seed", "-7"}, 2,
          "--seed: expected a whole number from 0 to 18446744073709551615, found '-7'"),
    story("seed_in_hexadecimal", {"--seed", "0x7"}, 2,
          "--seed: expected a whole number from 0 to 18446744073709551615, found '0x7'"),
    story("stop_missing", {"--stop"}, 2, "--stop: expected a value (TEXT), found none"),

    // Ids.
    story("ids_empty", {"--ids", ""}, 2, "--ids: expected ids as in 1,2,3, found ''"),
    story("ids_in_words", {"--ids", "1,two"}, 2, "--ids: expected ids as in 1,2,3, found '1,two'"),
    story("ids_with_a_hole", {"--ids", "1,,2"}, 2, "--ids: expected ids as in 1,2,3, found '1,,2'"),
    story("ids_with_a_comma_at_the_end", {"--ids", "1,2,"}, 2,
          "--ids: expected ids as in 1,2,3, found '1,2,'"),
    story("ids_negative", {"--ids", "1,-2"}, 2, "--ids: expected ids as in 1,2,3, found '1,-2'"),
    story("ids_beyond_32_bits", {"--ids", "4294967297"}, 2,
          "--ids: expected ids as in 1,2,3, found '4294967297'"),
    story("ids_beyond_the_vocabulary", {"--ids", "1,65"}, 2,
          "--ids: expected ids from 0 to 64 (the model's vocabulary), found 65"),
    story("ids_longer_than_the_context", {"--ids", "1,2,3", "--context", "2"}, 1,
          "prompt: expected at most 2 tokens (the context), found 3"),
    story("ids_and_a_prompt", {"--ids", "1", "--prompt", "Once"}, 2,
          "--prompt: expected no --ids beside it, found both"),

    // Prompts.
    story("prompt_empty", {""}, 2, "prompt: expected some text, found none"),
    story("prompt_that_is_broken_utf8", {"Once\xc3("}, 2,
          "prompt: expected UTF-8, found the byte 0xc3 at offset 4"),
    story("prompt_that_ends_within_a_character", {"Once \xe2\x82"}, 2,
          "prompt: expected UTF-8, found the byte 0xe2 at offset 5"),
    story("prompt_of_tokens_that_the_model_lacks", {"abba"}, 1,
          "TINY/tokenizer.json: expected ids from 0 to 64 (the 65 rows of TINY), found 70 (in "
          "prompt)"),
    story("stop_empty", {"--stop", ""}, 2, "--stop: expected text, found ''"),
    {"bench_of_nothing",
     {"bench", "--model", "TINY", "-p", "0", "-n", "0,0"},
     2,
     "--prompt, --generate: expected a number of tokens above 0, found 0 in both"},
    story("prompt_longer_than_the_context", {"aaaa", "--context", "3"}, 1,
          "prompt: expected at most 3 tokens (the context), found 4"),
    story("prompt_longer_than_the_model", {std::string(65, 'a')}, 1,
          "prompt: expected at most 64 tokens (the context), found 65"),

    // Models and files.
    {"model_missing", {"story", "--model", "TINY/none"}, 1, "TINY/none: no such folder"},
    {"model_that_is_a_file",
     {"story", "--model", "TINY/config.json"},
     1,
     "TINY/config.json: expected a model folder or a model file (GGUF, .bin, .flm), found "
     "another file"},
    {"model_with_a_newline_in_its_name",
     {"story", "--model", "a\nb"},
     1,
     "a\\x0ab: no such folder"},
    {"trace_of_more_cached_tokens_than_there_are",
     {"trace", "--model", "TINY", "--ids", "1,2", "--cached", "3", "--out", "TINY/t"},
     2,
     "--cached: expected 0 to 2, the number of ids, found 3"},
    {"trace_beyond_the_vocabulary",
     {"trace", "--model", "TINY", "--ids", "65", "--out", "TINY/t"},
     2,
     "--ids: expected ids from 0 to 64 (the model's vocabulary), found 65"},
    {"trace_into_a_folder_that_is_not_there",
     {"trace", "--model", "TINY", "--ids", "1", "--out", "TINY/none/t", "--threads", "1"},
     1,
     "TINY/none/t: cannot be written: No such file or directory"},
    {"trace_has_no_use_for_a_tokenizer",
     {"trace", "--model", "TINY", "--ids", "1", "--tokenizer", "TINY"},
     2,
     "unexpected option '--tokenizer'; see 'stagecraft trace --help'"},
    {"bench_has_no_use_for_a_tokenizer",
     {"bench", "--model", "TINY", "--tokenizer", "TINY"},
     2,
     "unexpected option '--tokenizer'; see 'stagecraft bench --help'"},
    {"trace_into_a_device",
     {"trace", "--model", "TINY", "--ids", "1", "--out", "/dev/null", "--threads", "1"},
     1,
     "/dev/null: expected a regular file, found a device"},
    {"compare_one_file",
     {"compare", "TINY/model.safetensors"},
     2,
     "B is required; see 'stagecraft compare --help'"},
    {"compare_what_is_no_trace",
     {"compare", "TINY/model.safetensors", "TINY/model.safetensors"},
     2,
     "TINY/model.safetensors: expected a trace, found no '__metadata__.order'"},
    {"compare_with_a_tolerance_of_nan",
     {"compare", "--rtol", "nan", "a", "b"},
     2,
     "--rtol: expected a number from 0 to 1e+30, found 'nan'"},
    {"trace_into_a_file_without_a_name",
     {"trace", "--model", "TINY", "--ids", "1", "--out", ""},
     2,
     "--out: expected a path, found ''"},
    {"info_about_nothing", {"info", ""}, 2, "--model: expected a path, found ''"},
    {"info_about_what_is_not_there", {"info", "TINY/none"}, 1, "TINY/none: no such folder"},
    {"tokenize_with_a_model_without_a_name",
     {"tokenize", "--model", ""},
     2,
     "--model: expected a path, found ''"},
    {"story_without_a_tokenizer",
     {"story", "--model", REPOSITORY "/tests/data/models/llama-gqa2"},
     1,
     REPOSITORY "/tests/data/models/llama-gqa2: expected a folder with a tokenizer.json or a "
                "tokenizer.model, found neither"},
    {"tokenize_without_a_tokenizer",
     {"tokenize", "--model", "TINY/none"},
     1,
     "TINY/none: cannot be opened: No such file or directory"},
    {"chat_with_a_model_for_stories",
     {"chat", "--model", "TINY", "Hello"},
     1,
     "TINY: expected a chat template, or the tokens <|im_start|> and <|im_end|> in the vocabulary, "
     "found neither (a model for stories has none); for a chat model, choose one "
     "(--chat-template): chatml, llama3, gemma, phi3, zephyr, mistral, llama2"},
    {"chat_without_a_question",
     {"chat", "--model", "TINY", ""},
     2,
     "question: expected some text, found none"},
    {"chat_with_a_system_prompt_that_is_broken_utf8",
     {"chat", "--model", "TINY", "--system", "\xff", "Hello"},
     2,
     "--system: expected UTF-8, found the byte 0xff at offset 0"},
    {"chat_with_a_template_that_is_no_file",
     {"chat", "--model", "TINY", "--chat-template", "foo", "Hello"},
     2,
     "--chat-template: expected a file or one of chatml, llama3, gemma, phi3, "
     "zephyr, mistral, "
     "llama2, found 'foo'"},
    {"chat_with_variables_that_are_no_json",
     {"chat", "--model", "TINY", "--chat-template", "zephyr", "--chat-template-kwargs", "{bad",
      "Hello"},
     2,
     "--chat-template-kwargs: not valid JSON: line 1, column 2: invalid literal"},
    {"chat_with_variables_that_are_an_array",
     {"chat", "--model", "TINY", "--chat-template", "zephyr", "--chat-template-kwargs", "[]",
      "Hello"},
     2,
     "--chat-template-kwargs: expected an object, found an array of 0"},
    {"chat_with_a_variable_that_the_template_does_not_read",
     {"chat", "--model", "TINY", "--chat-template", "zephyr", "--chat-template-kwargs",
      R"({"x": 1})", "Hello"},
     2,
     "--chat-template-kwargs: x: expected a variable of the chat template, "
     "found none"},
    {"serve_with_a_template_that_is_no_file",
     {"serve", "--model", "TINY", "--port", "0", "--chat-template", "foo"},
     2,
     "--chat-template: expected a file or one of chatml, llama3, gemma, phi3, "
     "zephyr, mistral, "
     "llama2, found 'foo'"},
    {"trace_of_no_activation",
     {"trace", "--model", "TINY", "--ids", "1", "--only", "nothing"},
     2,
     "--only: expected a part of a name from 'embedding' to 'logits', found "
     "'nothing'"},
    {"decode_a_word",
     {"tokenize", "--model", "TINY", "a", "--decode"},
     2,
     "text, line 1: expected token ids, found 'a'"},
    {"decode_an_id_that_is_too_large",
     {"tokenize", "--model", "TINY", "99", "--decode"},
     2,
     "text, line 1: expected token ids from 0 to 70, found 99"},
    {"encode_what_is_broken_utf8",
     {"tokenize", "--model", "TINY", "a\xff"},
     2,
     "text, line 1: expected UTF-8, found the byte 0xff at offset 1 of the "
     "input"},
    {"encode_lines_that_are_no_json",
     {"tokenize", "--model", "TINY", "a", "--jsonl"},
     2,
     "text, line 1: expected a JSON string, found 'a'"},
    {"model_file_that_is_not_there",
     {"story", "--model", "TINY/x.gguf"},
     1,
     "TINY/x.gguf: no such file"},
    {"peek_into_nothing",
     {"peek", "--model", "TINY", ""},
     2,
     "text: expected at least one token, found none"},
    {"peek_into_tokens_that_the_model_lacks",
     {"peek", "--model", "TINY", "ab"},
     1,
     "TINY/tokenizer.json: expected ids from 0 to 64 (the 65 rows of TINY), found 70 (in text)"},
    {"peek_at_a_head_that_is_not_there",
     {"peek", "--model", "TINY", "--attention", "2.0", "a"},
     2,
     "--attention: expected a layer from 0 to 1 and a head from 0 to 3, found 2.0"},
    {"peek_at_no_head",
     {"peek", "--model", "TINY", "--attention", "0.-1", "a"},
     2,
     "--attention: expected LAYER.HEAD as in 0.3, found '0.-1'"},
};

class RefusedCommand : public ::testing::TestWithParam<BadCommand> {};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

TEST_P(RefusedCommand, InOneLineThatSaysWhatIsWrong) {
  const TinyModel tiny;
  write_file(tiny.file("tokenizer.json"), kTokenizer);
  std::vector<std::string> arguments = GetParam().arguments;
  std::string message = GetParam().message;
  for (std::string& argument : arguments) replace_all(argument, "TINY", tiny.folder().string());
  replace_all(message, "TINY", tiny.folder().string());

  const LimitedRun run = run_limited(arguments);
  EXPECT_EQ(run.code, GetParam().code) << run.ended_by;
  EXPECT_EQ(run.err, "stagecraft: " + message + "\n");
  EXPECT_EQ(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(BadCommandLine, RefusedCommand, ::testing::ValuesIn(kBadCommands),
                         row_name);

}  // namespace
}  // namespace stagecraft
