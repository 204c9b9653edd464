#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generation/generate_text.h"

namespace stagecraft {

// Accepts a finite number in [min, max]; the error says so. (CLI::Range lets NaN pass.)
CLI::Validator in_range(double min, double max);
// Decimal digits only, as 12 and not as 1e1, 0x0c or 014.
CLI::Validator whole_in_range(std::uint64_t min, std::uint64_t max);
CLI::Validator one_of(std::vector<std::string> words);
// Refuses '' as a value: of `what`, for the message.
CLI::Validator not_empty(const char* what = "a path");

// What every command that generates text offers. Defaults stand here, the same for all.
struct GenerationFlags {
  std::string model;
  std::string tokenizer;        // empty: what the model brings
  std::size_t context = 0;      // 0: what the task needs, up to what the model was trained for
  std::size_t max_tokens = 0;   // 0: the command's own default
  std::size_t threads = 0;      // 0: one for each core
  std::string backend = "cpu";  // or textbook, cuda, cuda-emulator
  std::optional<std::size_t> gpu_layers;  // of --backend cuda
  std::string kv_type;                    // empty: see EngineOptions
  float temperature = 0.8f;
  std::size_t top_k = 40;
  float top_p = 0.95f;
  float repeat_penalty = 1.0f;
  std::size_t repeat_last_n = 64;
  std::vector<std::string> stops;
  std::string grammar;  // files; at most one of the two
  std::string json_schema;
  std::uint64_t seed = 0;
  CLI::Option* seed_option = nullptr;

  // Whether the layers of the course run: with --textbook, or with a student's code.
  bool runs_course_layers() const;

  void add_to(CLI::App& command);
  void add_model_to(CLI::App& command);      // --model alone
  void add_tokenizer_to(CLI::App& command);  // --tokenizer alone
  void add_threads_to(CLI::App& command);    // --threads alone
  void add_layers_to(CLI::App& command);     // --backend, --textbook and --kv-type
  void add_grammar_to(CLI::App& command);    // --grammar and --json-schema

  ModelSource tokenizer_source(const ModelSource& source) const;
  std::size_t thread_count() const;
  // On the textbook backend where it is asked for, or where its layers are the student's.
  Engine open_engine(const ModelSource& source) const;
  std::uint64_t chosen_seed() const;  // as given, or one that nobody could guess
  // What these files say, or null.
  std::shared_ptr<const TokenGrammar> read_grammar(const Tokenizer& tokenizer) const;
  TextOptions text_options(const Plan& plan, std::size_t default_max_tokens) const;
};

// "1,2,3" to ids, none negative; throws CLI::ValidationError naming the option.
std::vector<TokenId> parse_id_list(std::string_view option, std::string_view text);
// Throws CLI::ValidationError if one of them is no row of the model's embedding.
void check_ids(std::string_view option, std::span<const TokenId> ids, std::size_t vocab_size);

// Throws Error naming both if `tokenizer` made a prompt with ids that are no rows of the model.
void check_tokens(std::span<const TokenId> ids, const ModelSource& tokenizer,
                  const ModelSource& model, const Plan& plan);

// Where positions will be reached that the model was not trained for, says so on stderr.
void note_long_context(const Plan& plan, std::size_t context);

}  // namespace stagecraft
