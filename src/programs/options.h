#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "generation/generate_text.h"
#include "generation/sampling_ranges.h"

namespace stagecraft {

// Accepts a number in [min, max] in decimal digits: 0.5 or 1e-3, but not 0x1p-1, +1 or nan, and not
// 1e-99, which f32 would round to 0. The error message names the range.
CLI::Validator in_range(NumberRange range);
// Accepts a whole number in [min, max] in decimal digits only: 12, but not 1e1, 0x0c or 014.
CLI::Validator whole_in_range(std::uint64_t min, std::uint64_t max);
CLI::Validator one_of(std::vector<std::string> words);
// Changes a value to lower case. For Option::transform().
CLI::Validator in_lower_case();
// Refuses an empty value. The message calls the expected value `what`.
CLI::Validator not_empty(const char* what = "a path");

// What the help says about the result of default_context().
inline constexpr std::string_view kDefaultContextText =
    "what the model was trained for, at most 4096";

// The model that a command reads.
struct ModelFlags {
  std::string model;
  std::string tokenizer;  // empty: the model's own

  void add_model_to(CLI::App& command);      // --model
  void add_tokenizer_to(CLI::App& command);  // --tokenizer

  ModelSource tokenizer_source(const ModelSource& source) const;
  // Throws Error if the tokenizer that --tokenizer names is that of another model.
  void check_tokenizer(const Tokenizer& used, const ModelSource& source, const Plan& plan) const;
};

// How the model runs.
struct EngineFlags {
  std::size_t threads = 0;                // 0: one per core
  std::string backend = "cpu";            // or textbook, cuda, cuda-emulator
  std::optional<std::size_t> gpu_layers;  // of --backend cuda
  std::string kv_type;                    // empty: see EngineOptions

  void add_threads_to(CLI::App& command);  // --threads
  // --backend, --textbook, --gpu-layers and --kv-type
  void add_backend_to(CLI::App& command);

  std::size_t thread_count() const;
  // Uses the backend that --backend names, or Textbook if the layers are a student's. Throws Error
  // if an option does not fit the backend.
  Engine open_engine(const ModelSource& source) const;
  // Uses the backend whose intermediate results a command shows (observed_backend).
  Engine open_observed(const ModelSource& source) const;
};

// The options of all commands that generate text, with the same defaults for all of them.
struct GenerationFlags : ModelFlags, EngineFlags {
  std::size_t context = 0;     // 0: what the task needs, up to the trained length
  std::size_t max_tokens = 0;  // 0: the command's default
  float temperature = kDefaultSampler.temperature;
  std::size_t top_k = kDefaultSampler.top_k;
  float top_p = kDefaultSampler.top_p;
  float min_p = 0.0f;
  float repeat_penalty = 1.0f;
  std::size_t repeat_last_n = 64;
  std::vector<std::string> stops;
  std::string grammar;  // a file; at most one of grammar and json_schema
  std::string json_schema;
  std::uint64_t seed = 0;
  CLI::Option* seed_option = nullptr;

  // All options but those of the grammar. The help names the command's defaults of --max-tokens and
  // --context.
  void add_to(CLI::App& command, std::string_view default_tokens, std::string_view default_context);
  void add_grammar_to(CLI::App& command);  // --grammar and --json-schema

  std::uint64_t chosen_seed() const;  // the given seed, or a random one
  // The given size, or default_context(): that of chat and serve.
  std::size_t context_for(const Plan& plan) const;
  TextOptions text_options(const Plan& plan, std::size_t default_max_tokens) const;
};

// Calls `check`, which looks at a value of the command line. An Error about it becomes a
// CLI::ValidationError: the exit code is 2. This is so for every value that is wrong in itself, or
// that names what the model does not have (an id, a head, a variable of its chat template). Other
// errors keep exit code 1: the file that a value names is wrong, or a text is too long.
template <class Check>
auto value_of_command_line(const Check& check) {
  try {
    return check();
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

// A text from the user: an argument of the command, or a file.
struct TextFlags {
  std::string text;  // the default, until the command line is read
  std::string file = {};
  std::string name = {};  // of the argument
  CLI::Option* text_option = nullptr;
  CLI::Option* file_option = nullptr;

  // Adds the argument `called`, also as -p and --prompt; and -f, --file.
  void add_to(CLI::App& command, const std::string& called, const std::string& help);
  bool is_given() const { return text_option->count() + file_option->count() > 0; }
  // A file lacks its last line end, because editors add one. Throws CLI::ValidationError or Error
  // if the text is empty or not UTF-8, or the file cannot be read.
  std::string read() const;
};

// Throws CLI::ValidationError if the text that `what` calls is not UTF-8.
void check_text(std::string_view what, std::string_view text);

// The parts of "1,,2": "1", "" and "2".
std::vector<std::string> split_at_commas(std::string_view text);

// Turns "1,2,3" into ids, none of them negative. Throws CLI::ValidationError with the option's
// name.
std::vector<TokenId> parse_id_list(std::string_view option, std::string_view text);
// Throws CLI::ValidationError if an id is not a row of the model's embedding table.
void check_ids(std::string_view option, std::span<const TokenId> ids, std::size_t vocab_size);

// Throws CLI::ValidationError if the text that `what` calls has no token; Error if `tokenizer` made
// ids of it that are not rows of the model, naming both.
void check_tokens(std::string_view what, std::span<const TokenId> ids, const ModelSource& tokenizer,
                  const ModelSource& model, const Plan& plan);

// Prints a note on stderr if the context is longer than the model was trained for.
void note_long_context(const Plan& plan, std::size_t context);

}  // namespace stagecraft
