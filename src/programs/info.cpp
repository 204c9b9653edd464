#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "backends/cpu/packed_weights.h"
#include "base/error.h"
#include "base/number.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/find_model.h"
#include "checkpoint/safetensors.h"
#include "generation/text_memory.h"
#include "model/description.h"
#include "model/plan_summary.h"
#include "model/plan_text.h"
#include "model/plan_work.h"
#include "programs/options.h"
#include "programs/terminal.h"
#include "text/builtin_chat_templates.h"
#include "text/chat_format.h"
#include "text/chat_template_source.h"
#include "text/tokenizer.h"
#include "text/tokenizer_source.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownSpecials = 8;
constexpr std::size_t kShownError = 500;  // bytes

struct InfoFlags {
  std::string path;
  std::size_t context = 0;
  bool every_tensor = false;
  bool plan = false;
};

using Tensors = std::vector<const StoredTensor*>;

// "5.63 MB"
std::string amount_text(double amount, std::string_view unit) {
  if (amount >= 1e9) return fmt::format("{:.2f} G{}", amount * 1e-9, unit);
  if (amount >= 1e6) return fmt::format("{:.2f} M{}", amount * 1e-6, unit);
  return fmt::format("{:.2f} K{}", amount * 1e-3, unit);
}
std::string bytes_text(double bytes) { return amount_text(bytes, "B"); }

void print_heading(const std::string& text, const Terminal& terminal) {
  fmt::print("\n{}\n", terminal.bold(text));
}

void print_line(std::string_view what, const std::string& value) {
  fmt::print("  {:<15} {}\n", what, value);
}

// ---- tokenizer ----------------------------------------------------------------------------------

// "tokenizer.chat_template" for "models/x.gguf: tokenizer.chat_template"
std::string without_path(const std::string& where, const fs::path& model) {
  const std::string path = model.string();
  if (!where.starts_with(path)) return where;
  return where.substr(std::min(where.find_first_not_of("/: ", path.size()), where.size()));
}

// Whether a template is ChatML is decided by what it writes. A template that cannot be used is
// reported, not thrown: the rest of the model can still be shown.
std::string template_text(const ModelSource& model, const Tokenizer& tokenizer) {
  try {
    const ChatTemplateSource source = read_chat_template(model, tokenizer);
    if (!source.text.empty()) {
      return fmt::format("{} ({})",
                         ChatFormat::open(model, tokenizer).is_chatml() ? "ChatML" : "not ChatML",
                         without_path(source.where, model.path()));
    }
  } catch (const Error& error) {
    return fmt::format("cannot be used: {}",
                       printable(without_path(error.what(), model.path()), kShownError));
  }
  const BuiltinChatTemplate* builtin = guess_chat_template(tokenizer);
  return builtin == nullptr
             ? "none"
             : fmt::format("none; the special tokens are those of {}", builtin->name);
}

void print_tokenizer(const ModelSource& model) {
  if (!has_tokenizer(model)) return print_line("kind", "none");
  const Tokenizer tokenizer = Tokenizer::open(model);
  std::size_t count = 0;
  std::vector<std::string> specials;
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.token_of(id).empty()) continue;
    ++count;
    if (tokenizer.is_special(id)) {
      specials.push_back(fmt::format("{} {}", printable(tokenizer.token_of(id)), id));
    }
  }
  // The two kinds of vocabulary spell a space differently.
  const char* spaces = tokenizer.id_of("\xe2\x96\x81") ? "sentencepiece-style "
                       : tokenizer.id_of("\xc4\xa0")   ? "byte-level "
                                                       : "";
  const std::string kind = fmt::format("{}{}", spaces, tokenizer.algorithm());
  const std::size_t more = specials.size() - std::min(specials.size(), kShownSpecials);
  specials.resize(specials.size() - more);
  print_line("kind", kind);
  print_line("tokens", grouped(count));
  print_line("special", specials.empty()
                            ? "none"
                            : fmt::format("{}{}", fmt::join(specials, ", "),
                                          more == 0 ? "" : fmt::format(" and {} more", more)));
  print_line("chat template", template_text(model, tokenizer));
}

// ---- tensors ------------------------------------------------------------------------------------

// Replaces layer numbers, so that equal layers share a row: "model.layers.*.mlp.up_proj.weight".
std::string without_numbers(const std::string& name) {
  std::string out;
  std::size_t begin = 0;
  while (begin <= name.size()) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    out += (begin == 0 ? "" : ".");
    out += number ? "*" : part;
    begin = end + 1;
  }
  return out;
}

struct TensorRow {
  std::string name;
  std::string shape;
  std::string dtype;
  std::size_t count = 0;
};

std::vector<TensorRow> tensor_rows(const Tensors& tensors, bool every_tensor) {
  std::vector<TensorRow> rows;
  std::map<std::string, std::size_t> place;
  for (const StoredTensor* tensor : tensors) {
    TensorRow row{printable(every_tensor ? tensor->name : without_numbers(tensor->name)),
                  shape_text(tensor->shape), std::string(dtype_name(tensor->dtype))};
    const auto [found, is_new] =
        place.emplace(fmt::format("{} {} {}", row.name, row.shape, row.dtype), rows.size());
    if (is_new) rows.push_back(row);
    ++rows[found->second].count;
  }
  return rows;
}

void print_tensors(const Tensors& tensors, bool every_tensor) {
  const std::vector<TensorRow> rows = tensor_rows(tensors, every_tensor);
  std::size_t names = 0;
  std::size_t shapes = 0;
  for (const TensorRow& row : rows) {
    names = std::max(names, display_width(row.name));
    shapes = std::max(shapes, row.shape.size());
  }
  for (const TensorRow& row : rows) {
    fmt::print("  {}  {:<{}}  {}{}\n", pad_right(row.name, names), row.shape, shapes, row.dtype,
               row.count == 1 ? "" : fmt::format("  x {}", row.count));
  }
}

std::size_t stored_bytes(const Tensors& tensors) {
  std::size_t bytes = 0;
  for (const StoredTensor* tensor : tensors) bytes += tensor->bytes.size();
  return bytes;
}

std::string tensors_heading(const Tensors& tensors) {
  return fmt::format("{} tensors, {}", tensors.size(),
                     bytes_text(static_cast<double>(stored_bytes(tensors))));
}

// ---- memory -------------------------------------------------------------------------------------

void print_memory(const Checkpoint& checkpoint, const Plan& plan, std::size_t context) {
  const PackedBytes matrices = packed_bytes(plan, checkpoint);
  const auto packed = static_cast<double>(matrices.all);
  const auto tables = static_cast<double>(matrices.copied_tables);
  const auto copied = static_cast<double>(checkpoint.copied_bytes()) - tables;
  const auto cached = [&](KvType type) {
    return sequence_bytes(plan, {.kv_type = type}, context).cache;
  };
  const double cache = cached(KvType::F16);
  const double session = session_bytes(plan, {.kv_type = KvType::F16}, context);
  const auto line = [](std::string_view what, double bytes, const std::string& note) {
    fmt::print("  {:<15} {:>10}{}\n", what, bytes_text(bytes), note);
  };
  line("weights", packed, "  packed in panels; the pages of the file are released");
  if (!matrices.repacked.empty()) print_line("  of them", matrices.repacked);
  if (matrices.per_token != matrices.all) {
    line("read per token", static_cast<double>(matrices.per_token), "  of the weights");
  }
  if (tables != 0.0) line("embedding", tables, "  a copy: the file stores it in another format");
  if (copied != 0.0) {
    line("while opening", copied, "  copies of tensors stored in another order or in parts");
  }
  line("KV cache", cache,
       fmt::format("  {} per token", bytes_text(cache / static_cast<double>(context))));
  line("  as f32", cached(KvType::F32), "  with --kv-type f32");
  line("  as q8_0", cached(KvType::Q8_0), "  with --kv-type q8_0");
  line("workspace", session - cache, "");
  line("total", packed + tables + session, "");
}

// ---- work ---------------------------------------------------------------------------------------

void print_work(const Plan& plan, std::size_t context) {
  double linear = 0.0, attention = 0.0, delta = 0.0;
  for (const Step& step : plan.steps) {
    double& kind = std::holds_alternative<AttentionStep>(step.kind) ? attention
                   : std::holds_alternative<DeltaStep>(step.kind)   ? delta
                                                                    : linear;
    kind += work_per_token(plan, step.kind, context).operations;
  }
  const auto line = [](std::string_view what, double operations, std::string_view note) {
    if (operations == 0.0) return;
    fmt::print("  {:<15} {:>12}{}\n", what, amount_text(operations, "FLOP"), note);
  };
  line("linear layers", linear, "  a product and a sum per weight");
  line("attention", attention, "  grows with the text");
  line("delta rule", delta, "");
  line("total", linear + attention + delta, "");
}

// ---- the command --------------------------------------------------------------------------------

// Prints any safetensors file, such as a shard or a trace.
void print_file(const fs::path& path, const InfoFlags& flags, const Terminal& terminal) {
  const SafetensorsFile file(path);
  Tensors tensors;
  for (const StoredTensor& tensor : file.tensors()) tensors.push_back(&tensor);
  fmt::print("{}\n", terminal.bold(path.string()));
  for (const auto& [key, value] : file.metadata()) print_line(printable(key), printable(value, 60));
  print_heading(tensors_heading(tensors), terminal);
  print_tensors(tensors, flags.every_tensor);
}

void run_info(const InfoFlags& flags) {
  const fs::path path = find_model(flags.path, "story");
  const Terminal terminal = Terminal::of_stdout();
  const ModelSource model = path;
  std::error_code ignored;  // Checkpoint::open says what is wrong
  if (fs::is_regular_file(path, ignored) && !model.is_file())
    return print_file(path, flags, terminal);

  const Checkpoint checkpoint = Checkpoint::open(model);
  const Plan plan = describe_model(model).plan;
  if (flags.plan) return fmt::print("{}", plan_text(plan));
  const Tensors tensors = checkpoint.tensors();
  const std::size_t context = flags.context != 0 ? flags.context : plan.max_seq_len;
  fmt::print("{}\n", terminal.bold(path.string()));
  for (const auto& [what, value] : plan_summary(plan, checkpoint)) print_line(what, value);
  print_heading("tokenizer", terminal);
  print_tokenizer(model);
  print_heading(tensors_heading(tensors), terminal);
  print_tensors(tensors, flags.every_tensor);
  print_heading(fmt::format("memory at a context of {} tokens", grouped(context)), terminal);
  print_memory(checkpoint, plan, context);
  print_heading(fmt::format("work for token {} of a text", grouped(context)), terminal);
  print_work(plan, context);
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("info", "Show what a model contains, its memory, and its work per token");
  const auto flags = std::make_shared<InfoFlags>();
  command
      ->add_option(
          "path,-m,--model", flags->path,
          "The model (a folder, a file, or the name of a pulled model), or any safetensors file")
      ->check(not_empty())
      ->type_name("PATH");
  command
      ->add_option("-c,--context", flags->context,
                   "Compute memory and work for a context of N tokens (default: what the model was "
                   "trained for)")
      ->check(whole_in_range(1, 1'000'000'000))
      ->type_name("N");
  command->add_flag("--tensors", flags->every_tensor, "Show each tensor in a separate row");
  command->add_flag("--plan", flags->plan, "Show only what a forward pass computes, step by step");
  command->footer("Example: stagecraft info models/story --context 256");
  command->callback([flags] { run_info(*flags); });
}

}  // namespace stagecraft
