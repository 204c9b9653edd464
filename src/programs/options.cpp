#include "programs/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "backends/cuda/cuda_backend.h"
#include "base/ascii.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/number.h"
#include "base/processors.h"
#include "base/utf8.h"
#include "generation/text_memory.h"
#include "programs/console.h"
#include "programs/students_code.h"
#include "text/tokenizer_source.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxGpuLayers = 10'000;
constexpr std::size_t kMaxPromptBytes = 64 << 20;

}  // namespace

CLI::Validator in_range(NumberRange range) {
  return CLI::Validator(
      [range](std::string& text) -> std::string {
        const auto value = decimal_of(text);
        if (!value || *value < range.min || *value > range.max) {
          return fmt::format("expected a number from {} to {}, found '{}'", range.min, range.max,
                             printable(text));
        }
        const bool says_0 = text.find_first_of("123456789") >= text.find_first_of("eE");
        if (says_0 || static_cast<float>(*value) != 0.0f) return {};
        return fmt::format("expected 0 or a number that is not too small for f32, found '{}'",
                           printable(text));
      },
      "");
}

CLI::Validator whole_in_range(std::uint64_t min, std::uint64_t max) {
  return CLI::Validator(
      [min, max](std::string& text) -> std::string {
        const auto value = integer_of<std::uint64_t>(text);
        const bool octal = text.size() > 1 && text[0] == '0';  // CLI11 would read 010 as octal
        if (value && !octal && *value >= min && *value <= max) return {};
        return fmt::format("expected a whole number from {} to {}, found '{}'", min, max,
                           printable(text));
      },
      "");
}

CLI::Validator in_lower_case() {
  return CLI::Validator(
      [](std::string& text) {
        text = ascii_lower(text);
        return std::string();
      },
      "");
}

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](std::string& text) -> std::string {
        if (std::ranges::count(words, text) != 0) return {};
        return fmt::format("expected one of {}, found '{}'", fmt::join(words, ", "),
                           printable(text));
      },
      "");
}

CLI::Validator not_empty(const char* what) {  // --model "$UNSET" must not select the default model
  return CLI::Validator(
      [what](std::string& text) {
        return text.empty() ? fmt::format("expected {}, found ''", what) : std::string();
      },
      "");
}

void ModelFlags::add_model_to(CLI::App& command) {
  command
      .add_option("-m,--model", model, "The model: a folder, a file, or the name of a pulled model")
      ->check(not_empty())
      ->type_name("PATH");
}

void ModelFlags::add_tokenizer_to(CLI::App& command) {
  command
      .add_option(
          "--tokenizer", tokenizer,
          "The tokenizer (tokenizer.json, tokenizer.bin), if it is not in the model or beside it")
      ->check(not_empty())
      ->type_name("PATH");
}

ModelSource ModelFlags::tokenizer_source(const ModelSource& source) const {
  return tokenizer.empty() ? source : ModelSource(tokenizer);
}

void ModelFlags::check_tokenizer(const Tokenizer& used, const ModelSource& source,
                                 const Plan& plan) const {
  if (tokenizer.empty()) return;
  refuse_other_tokenizer(ModelSource(tokenizer), used.vocab_size(), source, plan.vocab_size);
}

namespace {

// The names that --backend accepts in this program.
std::vector<std::string> backend_names() {
  std::vector<std::string> names = {"cpu", "textbook"};
  if (!cuda_backend_name().empty()) names.emplace_back(cuda_backend_name());
  return names;
}

CLI::Validator a_backend() {
  return CLI::Validator(
      [](std::string& name) -> std::string {
        std::string error = one_of(backend_names())(name);
        if (error.empty()) return {};
        if (name == "cuda") error += "; docs/cuda.md says how to build with CUDA";
        if (name == "cuda-emulator") error += "; ./stage builds a program with it";
        return error;
      },
      "");
}

}  // namespace

void EngineFlags::add_threads_to(CLI::App& command) {
  command.add_option("-t,--threads", threads, "Threads (default: one for each core)")
      ->check(whole_in_range(1, kMostThreads))
      ->type_name("N");
}

void EngineFlags::add_backend_to(CLI::App& command) {
  CLI::Option* chosen =
      command
          .add_option("--backend", backend,
                      "Where the model runs: cpu, textbook (the layers of the course), cuda (a "
                      "GPU) or cuda-emulator (its kernels without a GPU, slowly)")
          ->check(a_backend())
          ->capture_default_str()
          ->type_name("NAME");
  command
      .add_option_function<std::size_t>(
          "--gpu-layers", [this](const std::size_t& n) { gpu_layers = n; },
          "With --backend cuda or cuda-emulator: run only the last N layers and the output head "
          "there, the others on the CPU; 0: none (default: all)")
      ->check(whole_in_range(0, kMaxGpuLayers))
      ->type_name("N");
  command
      .add_flag_callback(
          "--textbook", [this] { backend = "textbook"; },
          "Run the layers of the course: the same as --backend textbook")
      ->excludes(chosen);
  command
      .add_option(
          "--kv-type", kv_type,
          "Type of the KV cache: f32, f16 or bf16 (half the memory), or q8_0 (less than a third); "
          "default: f16; bf16 for large models if the processor multiplies bf16 faster; f32 with "
          "--textbook")
      ->transform(in_lower_case())
      ->check(one_of({kKvTypeNames.begin(), kKvTypeNames.end()}))
      ->type_name("TYPE");
}

void GenerationFlags::add_to(CLI::App& command, std::string_view default_tokens,
                             std::string_view default_context) {
  add_model_to(command);
  add_tokenizer_to(command);
  command
      .add_option("-n,--max-tokens", max_tokens,
                  fmt::format("Generate at most N new tokens (default: {})", default_tokens))
      ->check(whole_in_range(1, kMostTokens))
      ->type_name("N");
  command
      .add_option("-c,--context", context,
                  fmt::format("Size of the context: the model reads at most N tokens, prompt "
                              "included (default: {})",
                              default_context))
      ->check(whole_in_range(1, kMostTokens))
      ->type_name("N");
  add_threads_to(command);
  add_backend_to(command);
  command
      .add_option("--temperature,--temp", temperature, "Randomness; 0: always the likeliest token")
      ->check(in_range(kTemperatures))
      ->capture_default_str()
      ->type_name("T");
  command.add_option("--top-k", top_k, "Choose among the K likeliest tokens; 0: all")
      ->check(whole_in_range(0, kMostTokens))
      ->capture_default_str()
      ->type_name("K");
  command
      .add_option("--top-p", top_p,
                  "Choose among the likeliest tokens that together have probability P")
      ->check(in_range(kTopPs))
      ->capture_default_str()
      ->type_name("P");
  command
      .add_option("--min-p", min_p,
                  "Never choose a token less likely than P times the likeliest one; 0: may be any")
      ->check(in_range(kMinPs))
      ->capture_default_str()
      ->type_name("P");
  command.add_option("--repeat-penalty", repeat_penalty, "Above 1: less repetition")
      ->check(in_range(kRepeatPenalties))
      ->capture_default_str()
      ->type_name("X");
  command.add_option("--repeat-last-n", repeat_last_n, "The penalty applies to the last N tokens")
      ->check(whole_in_range(0, kMostTokens))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--stop", stops, "Stop where this text appears (may be given several times)")
      ->check(not_empty("text"))
      ->type_name("TEXT")
      ->allow_extra_args(false);
  seed_option = command.add_option("--seed", seed, "The same seed gives the same text")
                    ->check(whole_in_range(0, UINT64_MAX))
                    ->type_name("N");
}

void GenerationFlags::add_grammar_to(CLI::App& command) {
  CLI::Option* const rules =
      command
          .add_option("--grammar", grammar,
                      "Write only what the grammar in this file (GBNF) allows")
          ->check(not_empty())
          ->type_name("FILE");
  command
      .add_option("--json-schema", json_schema, "Write JSON that follows the schema in this file")
      ->check(not_empty())
      ->excludes(rules)
      ->type_name("FILE");
}

std::size_t EngineFlags::thread_count() const {
  if (threads != 0) return threads;
  return std::min(usable_cores(), kMostThreads);
}

namespace {

BackendKind backend_kind(const std::string& name) {
  if (name == "cpu") return BackendKind::Cpu;
  return name == "textbook" ? BackendKind::Textbook : BackendKind::Cuda;
}

}  // namespace

Engine EngineFlags::open_engine(const ModelSource& source) const {
  EngineOptions options{backend_kind(backend), thread_count(), {}};
  const bool runs_course_layers = backend == "textbook" || students_code != nullptr;
  if (runs_course_layers) options.backend = BackendKind::Textbook;
  if (!kv_type.empty()) {
    const auto name = std::ranges::find(kKvTypeNames, kv_type);
    options.kv_type = static_cast<KvType>(name - kKvTypeNames.begin());
  }
  if (runs_course_layers && options.kv_type.value_or(KvType::F32) != KvType::F32) {
    throw CLI::ValidationError(
        "--kv-type",
        fmt::format("expected f32 (the only type that the layers of the course use), found {}",
                    kv_type));
  }
  if (gpu_layers && options.backend != BackendKind::Cuda) {
    throw CLI::ValidationError(
        "--gpu-layers", fmt::format("expected --backend cuda or cuda-emulator, found {}", backend));
  }
  options.gpu_layers = gpu_layers;
  Engine engine = Engine::open(source, options);
  tell_students_code(engine.plan().vocab_size);
  return engine;
}

Engine EngineFlags::open_observed(const ModelSource& source) const {
  Engine engine = Engine::open(source, {observed_backend(), thread_count()});
  tell_students_code(engine.plan().vocab_size);
  return engine;
}

std::uint64_t GenerationFlags::chosen_seed() const {
  return seed_option->count() > 0 ? seed : std::random_device()();
}

std::size_t GenerationFlags::context_for(const Plan& plan) const {
  return context != 0 ? context : default_context(plan);
}

TextOptions GenerationFlags::text_options(const Plan& plan, std::size_t default_max_tokens) const {
  TextOptions options;
  options.stops = stops;
  options.generation.max_tokens = max_tokens == 0 ? default_max_tokens : max_tokens;
  options.generation.sampler = {temperature, top_k, top_p};
  options.rules.min_p = min_p;
  options.generation.repeat_penalty = repeat_penalty;
  options.generation.repeat_last_n = repeat_last_n;
  options.generation.end_tokens = plan.eos_ids;
  return options;
}

void check_text(std::string_view what, std::string_view text) {
  value_of_command_line([&] { check_utf8(what, text); });
}

void TextFlags::add_to(CLI::App& command, const std::string& called, const std::string& help) {
  name = called;
  text_option = command.add_option(name + ",-p,--prompt", text, help)->type_name("TEXT");
  file_option = command.add_option("-f,--file", file, "The same text, from a file")
                    ->check(not_empty())
                    ->excludes(text_option)
                    ->type_name("FILE");
}

std::string TextFlags::read() const {
  if (file_option->count() == 0) {
    check_text(name, text);
    if (text.empty()) throw CLI::ValidationError(name, "expected some text, found none");
    return text;
  }
  std::string read = read_text_file(file, kMaxPromptBytes, Pipes::Read);
  check_utf8(file, read);
  if (read.ends_with('\n')) read.resize(read.size() - (read.ends_with("\r\n") ? 2 : 1));
  if (read.empty()) throw Error("{}: expected some text, found none", printable(file, 1000));
  return read;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (std::string_view rest = text;;) {
    parts.emplace_back(rest.substr(0, rest.find(',')));
    if (parts.back().size() == rest.size()) return parts;
    rest.remove_prefix(parts.back().size() + 1);
  }
}

std::vector<TokenId> parse_id_list(std::string_view option, std::string_view text) {
  std::vector<TokenId> ids;
  for (const std::string& part : split_at_commas(text)) {
    const auto id = integer_of<TokenId>(part);
    if (!id || *id < 0) {
      throw CLI::ValidationError(
          std::string(option),
          fmt::format("expected ids as in 1,2,3, found '{}'", printable(text)));
    }
    ids.push_back(*id);
  }
  return ids;
}

void check_ids(std::string_view option, std::span<const TokenId> ids, std::size_t vocab_size) {
  for (const TokenId id : ids) {
    if (static_cast<std::size_t>(id) < vocab_size) continue;
    throw CLI::ValidationError(
        std::string(option),
        fmt::format("expected ids from 0 to {} (the model's vocabulary), found {}", vocab_size - 1,
                    id));
  }
}

void check_tokens(std::string_view what, std::span<const TokenId> ids, const ModelSource& tokenizer,
                  const ModelSource& model, const Plan& plan) {
  if (ids.empty()) {
    throw CLI::ValidationError(std::string(what), "expected at least one token, found none");
  }
  const TokenId largest = *std::max_element(ids.begin(), ids.end());
  if (static_cast<std::size_t>(largest) < plan.vocab_size) return;
  throw Error("{}: expected ids from 0 to {} (the {} rows of {}), found {} (in {})",
              vocabulary_path(tokenizer).string(), plan.vocab_size - 1, plan.vocab_size,
              model.name(), largest, what);
}

void note_long_context(const Plan& plan, std::size_t context) {
  if (context <= plan.max_seq_len) return;
  print_note(
      fmt::format("note: the model was trained for {} tokens; beyond them, its text may get worse",
                  plan.max_seq_len));
}

}  // namespace stagecraft
