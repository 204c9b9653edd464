#include "convert/convert.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/error.h"
#include "checkpoint/find_model.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/options.h"

namespace stagecraft {
namespace {

struct ConvertFlags {
  std::string model;
  std::string out;
  std::string to;
  std::string type;
  std::string tokenizer;
  bool without_tokenizer = false;
  bool force = false;
};

constexpr std::array<std::pair<std::string_view, DType>, 6> kTypes = {{
    {"f32", DType::F32},
    {"f16", DType::F16},
    {"bf16", DType::BF16},
    {"q8_0", DType::Q8_0},
    {"q4_0", DType::Q4_0},
    {"q4_1", DType::Q4_1},
}};

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const auto& [name, dtype] : kTypes) names.emplace_back(name);
  return names;
}

// The format that the name of OUT shows. A folder may have a dot in its name (SmolLM2-1.7B), but an
// end such as .bin or .ggfu was meant for a file.
std::string target_of(const ConvertFlags& flags) {
  if (!flags.to.empty()) return flags.to;
  const std::string extension = ascii_lower(std::filesystem::path(flags.out).extension().string());
  if (extension == ".gguf") return "gguf";
  if (extension == ".flm") return "flm";
  if (extension.size() > 1 &&
      std::all_of(extension.begin() + 1, extension.end(), is_ascii_letter)) {
    throw CLI::ValidationError(
        "OUT", fmt::format("expected NAME.gguf, NAME.flm or a folder, found '{}' (--to folder "
                           "writes a folder of that name)",
                           printable(flags.out, 1000)));
  }
  return "folder";
}

void check_type(const std::string& target, const ConvertFlags& flags) {
  const bool blocks = flags.type.starts_with('q');
  if (flags.type.empty() || target == "gguf") return;
  if (target == "folder" && !blocks) return;
  if (target == "flm" && flags.type == "f32") return;
  throw CLI::ValidationError(
      "--type",
      fmt::format("expected {} for a {}, found '{}'", target == "flm" ? "f32" : "f32, f16 or bf16",
                  target == "flm" ? ".flm file" : "folder", flags.type));
}

void run_convert(const ConvertFlags& flags) {
  const std::string target = target_of(flags);
  check_type(target, flags);
  Conversion conversion{.model = find_model(flags.model, "story"), .out = flags.out};
  for (const auto& [name, dtype] : kTypes) {
    if (flags.type == name) conversion.dtype = dtype;
  }
  if (!flags.tokenizer.empty()) conversion.tokenizer = flags.tokenizer;
  conversion.with_tokenizer = !flags.without_tokenizer;
  conversion.replace = flags.force;
  const InterruptGuard guard(InterruptGuard::kEndToo);
  conversion.check = [&] { guard.stop_if_interrupted(); };
  const Converted result = target == "gguf"  ? convert_to_gguf(conversion)
                           : target == "flm" ? convert_to_flm(conversion)
                                             : convert_to_folder(conversion);
  for (const std::string& note : result.notes) print_note("note: " + note);
  fmt::print("{}: {} tensors, {:.2f} MB\n", printable(flags.out, 1000), result.n_tensors,
             static_cast<double>(result.bytes) * 1e-6);
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* command = app.add_subcommand("convert", "Write a model in another format or type");
  const auto flags = std::make_shared<ConvertFlags>();
  command
      ->add_option(
          "model", flags->model,
          "The model: a folder, a file (GGUF, llama2.c, .flm), or the name of a pulled model")
      ->required()
      ->check(not_empty())
      ->type_name("MODEL");
  command->add_option("out", flags->out, "What to write: NAME.gguf, NAME.flm, or a folder")
      ->required()
      ->check(not_empty())
      ->type_name("OUT");
  command->add_option("--to", flags->to, "The format to write, if the name does not show it")
      ->check(one_of({"gguf", "folder", "flm"}));
  command
      ->add_option("--type", flags->type,
                   "Type of the matrices: f32, f16, bf16; in GGUF also q8_0, q4_0, q4_1; in .flm "
                   "only f32 (default: as stored)")
      ->transform(in_lower_case())
      ->check(one_of(type_names()));
  command->add_option("--tokenizer", flags->tokenizer, "The tokenizer, if the model has none")
      ->check(not_empty())
      ->type_name("PATH");
  command->add_flag("--without-tokenizer", flags->without_tokenizer,
                    "Write only weights and sizes");
  command->add_flag("--force", flags->force, "Replace existing files");
  command->footer(
      "GGUF and .flm: Llama, Mistral, Qwen2 and Qwen3 only (.flm also ChatGLM); a folder: most "
      "models, and an error says why if not\n"
      "Examples: stagecraft convert models/story story.gguf --type q8_0\n"
      "          stagecraft convert stories15M.bin stories15M/");
  command->callback([flags] { run_convert(*flags); });
}

}  // namespace stagecraft
