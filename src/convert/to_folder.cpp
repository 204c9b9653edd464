// convert_to_folder: writes a folder that Hugging Face transformers opens.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_kind.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "base/number.h"
#include "base/processors.h"
#include "checkpoint/convert_tensor.h"
#include "checkpoint/safetensors_writer.h"
#include "convert/convert.h"
#include "convert/llama3_rope.h"
#include "convert/output_tensors.h"
#include "convert/sources.h"
#include "model/architectures/llama.h"
#include "model/config_file.h"
#include "model/description.h"
#include "model/plan_text.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxCopiedBytes = std::size_t{128} << 20;
constexpr std::array<std::string_view, 10> kTokenizerFiles = {"tokenizer.json",
                                                              "tokenizer_config.json",
                                                              "special_tokens_map.json",
                                                              "added_tokens.json",
                                                              "vocab.json",
                                                              "merges.txt",
                                                              "tokenizer.model",
                                                              kChatTemplateFile,
                                                              "chat_template.json",
                                                              kToolTemplateFile};
// The folder of kToolTemplateFile.
const std::string kMoreTemplates = fs::path(kToolTemplateFile).parent_path().string();

// Whether a file or folder of this name belongs to a model folder, so that an old one must not stay
// beside a new model. Without config.json and model.safetensors, which every conversion replaces.
bool belongs_to_a_model_folder(std::string_view name) {
  return std::ranges::find(kTokenizerFiles, name) != kTokenizerFiles.end() ||
         name == kMoreTemplates || name == "generation_config.json" ||
         name == "model.safetensors.index.json" ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));  // a shard
}

// Files are first written to a temporary folder. commit() renames it to `path`. If `path` is
// already a folder, commit() moves the new files there, then deletes the other files of the old
// model; files that are not part of a model stay.
class AtomicFolder {
 public:
  AtomicFolder(fs::path path, bool replace) : path_(std::move(path)) {
    if (!path_.has_filename()) path_ = path_.parent_path();  // "models/new/"
    if (!replace) refuse_existing(path_);
    refuse_other_kinds(path_, fs::file_type::directory);
    unfinished_ = path_;
    unfinished_ += fmt::format(".part-{}", ::getpid());
    std::error_code failed;
    // Left over from a conversion that was killed: in a container, the same id of a process comes
    // again.
    fs::remove_all(unfinished_, failed);
    if (!failed) fs::create_directory(unfinished_, failed);
    if (failed) refuse(failed);
  }
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder() {
    std::error_code ignored;
    fs::remove_all(unfinished_, ignored);
  }

  const fs::path& path() const { return unfinished_; }
  fs::path file(std::string_view name) const { return unfinished_ / name; }
  void write(std::string_view name, std::string_view text) const {
    std::error_code failed;
    fs::create_directories(file(name).parent_path(), failed);
    if (failed) refuse(failed);
    AtomicFile out(file(name), true);
    out.write(text);
    out.commit();
  }
  void commit() const {
    std::error_code failed;
    if (!fs::is_directory(path_, failed)) return move(unfinished_, path_);
    // Files of the old model that the new one does not have.
    std::vector<fs::path> leftovers = files_of(path_);
    std::erase_if(leftovers, [&](const fs::path& old) {
      const std::string name = old.filename().string();
      return !belongs_to_a_model_folder(name) || fs::exists(file(name), failed);
    });
    for (const fs::path& made : files_of(unfinished_)) {
      const fs::path to = path_ / made.filename();
      if (fs::is_directory(made, failed)) remove(to);  // rename() replaces only an empty folder
      move(made, to);
    }
    for (const fs::path& old : leftovers) remove(old);
  }

 private:
  std::vector<fs::path> files_of(const fs::path& folder) const {
    std::vector<fs::path> files;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
      files.push_back(at->path());
    }
    if (failed) refuse(failed);
    return files;
  }
  void remove(const fs::path& old) const {
    std::error_code failed;
    old.filename() == kMoreTemplates ? fs::remove_all(old, failed) : fs::remove(old, failed);
    if (failed) refuse(failed);
  }
  void move(const fs::path& from, const fs::path& to) const {
    std::error_code failed;
    fs::rename(from, to, failed);
    if (failed) refuse(failed);
  }
  [[noreturn]] void refuse(const std::error_code& why) const {
    throw Error("{}: cannot be written: {}", printable(path_.string(), 1000), why.message());
  }
  fs::path path_;
  fs::path unfinished_;
};

std::string_view torch_name(DType dtype) {
  return dtype == DType::F16 ? "float16" : dtype == DType::BF16 ? "bfloat16" : "float32";
}

// The shortest number that f32 rounds to the same value: 1e-05 for 9.999999747378752e-06.
nlohmann::json shortest(const nlohmann::json& value) {
  return json_value(fmt::format("{}", static_cast<float>(value.get<double>())));
}

// The class of Hugging Face's transformers for a model_type: "Qwen2MoeForCausalLM" for "qwen2_moe",
// "Qwen3_5ForCausalLM" for "qwen3_5_text".
std::string transformers_class(std::string_view model_type) {
  constexpr std::pair<std::string_view, std::string_view> kIrregular[] = {
      {"chatglm", "ChatGLMModel"},        {"gpt2", "GPT2LMHeadModel"},
      {"gpt_neox", "GPTNeoXForCausalLM"}, {"gptj", "GPTJForCausalLM"},
      {"opt", "OPTForCausalLM"},          {"smollm3", "SmolLM3ForCausalLM"},
      {"stablelm", "StableLmForCausalLM"}};
  for (const auto& [type, irregular] : kIrregular) {
    if (model_type == type) return std::string(irregular);
  }
  if (model_type.ends_with("_text")) model_type.remove_suffix(5);
  std::string name;
  bool begins_word = true;
  for (std::size_t i = 0; i < model_type.size(); ++i) {
    const char c = model_type[i];
    const bool before_letter = i + 1 < model_type.size() && model_type[i + 1] >= 'a';
    if (c != '_' || !before_letter) {
      name += static_cast<char>(begins_word && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    begins_word = c == '_';
  }
  return name + "ForCausalLM";
}

// The type that all matrices have, or else F32. Programs may load every weight of a folder as its
// "torch_dtype", and must not round a matrix. (Norms are left out: GGUF stores them as F32 in any
// case.)
DType widest_type(std::span<const OutputTensor> tensors) {
  std::set<DType> types;
  for (const OutputTensor& tensor : tensors) {
    if (tensor.stored->shape.size() > 1) types.insert(tensor.dtype);
  }
  return types.size() == 1 ? *types.begin() : DType::F32;
}

// The Config of a GGUF file that stores factors of RoPE, with the fields of config.json that say
// the same. Throws Error if there are none.
Config with_named_rope(const Config& config, const ModelSource& model) {
  const std::optional<RopeConfig> named = llama3_rope(config.rope, config.head_dim);
  if (!named) {
    throw Error("{}: tensor 'rope_freqs.weight': config.json has no field for these RoPE factors",
                model.name());
  }
  Config result = config;
  result.rope = *named;
  return result;
}

nlohmann::json rope_scaling(const RopeConfig& rope) {
  return {
      {"rope_type", "llama3"},
      {"factor", rope.factor},
      {"low_freq_factor", rope.low_freq_factor},
      {"high_freq_factor", rope.high_freq_factor},
      {"original_max_position_embeddings", static_cast<std::size_t>(rope.original_max_seq_len)}};
}

// named_rope: in place of the factors in the file.
std::string folder_config(const ModelSource& model, const Plan& plan, DType dtype,
                          const std::optional<RopeConfig>& named_rope) {
  auto json = json_value(config_text(model).text);
  if (named_rope) {
    json.erase(kRopeFactors);
    json["rope_scaling"] = rope_scaling(*named_rope);
  }
  for (const auto& [key, value] : json.items()) {
    if (!key.starts_with(kStoredFields)) continue;
    throw Error("{}: a folder cannot hold the tensor layout of {} in this file ('{}')",
                model.name(), plan.model_type, key);
  }
  if (!json.contains("architectures")) {
    json["architectures"] = {transformers_class(plan.model_type)};
  }
  const auto eps = json.find("rms_norm_eps");
  if (model.is_file() && eps != json.end() && eps->is_number_float()) *eps = shortest(*eps);
  json.erase("dtype");
  json.erase("quantization_config");  // matrices are no longer written in parts
  json["torch_dtype"] = torch_name(dtype);
  return json_text(json, 2) + "\n";
}

// Writes tokenizer.json and tokenizer_config.json for a source that is not a folder.
void write_tokenizer(const AtomicFolder& folder, const Conversion& conversion, const Plan& plan) {
  const SourceTokenizer source = source_tokenizer(conversion);
  const Tokenizer& tokenizer = source.tokenizer;
  folder.write("tokenizer.json", json_text(source.description.root()));
  nlohmann::json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                         {"clean_up_tokenization_spaces", false},
                         {"model_max_length", plan.max_seq_len}};
  for (const auto& [name, token] : source.special_tokens) {
    if (!token.empty()) json[name] = token;
  }
  if (source.special_tokens.empty()) {  // llama2.c's files do not name them
    const auto framed = tokenizer.encode("", {.add_special = true});
    if (!framed.empty()) json["bos_token"] = tokenizer.token_of(framed.front());
  }
  if (!json.contains("eos_token") && !plan.eos_ids.empty()) {
    json["eos_token"] = tokenizer.token_of(plan.eos_ids.front());
  }
  if (!source.tools_template.empty()) {
    json["chat_template"] = {{{"name", "default"}, {"template", source.chat_template}},
                             {{"name", kToolUse}, {"template", source.tools_template}}};
  } else if (!source.chat_template.empty()) {
    json["chat_template"] = source.chat_template;
  }
  folder.write("tokenizer_config.json", json_text(json, 2) + "\n");
}

// Throws Error if the written config describes another model than `plan`.
void check_same_plan(const AtomicFolder& folder, const Plan& plan, const fs::path& out) {
  const auto refuse = [&](const std::string& why) {
    throw Error("{}: a folder cannot hold this model: {}", printable(out.string(), 1000), why);
  };
  std::string written;
  try {
    written = plan_text(describe_model(folder.path()).plan);
  } catch (const Error& error) {  // it names the unfinished folder
    std::string why = error.what();
    const std::string unfinished = folder.path().string() + "/";
    if (why.starts_with(unfinished)) why.erase(0, unfinished.size());
    refuse(why);
  }
  const std::string expected = plan_text(plan);
  if (written == expected) return;
  const auto [line, other] = first_difference(expected, written);
  refuse(fmt::format("it would compute '{}' instead of '{}'", other, line));
}

void copy_or_write_tokenizer(const AtomicFolder& folder, const Conversion& conversion,
                             const Plan& plan) {
  const fs::path from = conversion.tokenizer.value_or(conversion.model).path();
  std::error_code ignored;
  if (!fs::is_directory(from, ignored)) return write_tokenizer(folder, conversion, plan);
  for (const std::string_view name : kTokenizerFiles) {
    if (!is_there(from / name)) continue;
    folder.write(name, read_text_file(from / name, kMaxCopiedBytes));
  }
  if (!conversion.tokenizer) return;
  // The model's templates replace those of the tokenizer's folder.
  const ChatTemplateSource own = read_chat_template(source_of_template(conversion));
  if (own.text.empty()) return;
  fs::remove_all(folder.file(kMoreTemplates), ignored);
  folder.write(kChatTemplateFile, own.text);
  if (!own.tools_text.empty()) folder.write(kToolTemplateFile, own.tools_text);
}

}  // namespace

Converted convert_to_folder(const Conversion& conversion) {
  if (!conversion.replace) refuse_existing(conversion.out);
  const Checkpoint checkpoint = Checkpoint::open(conversion.model);
  const ModelDescription description = describe_model(conversion.model);
  Converted result;
  Plan plan = description.plan;
  std::optional<RopeConfig> named_rope;
  if (description.config && !description.config->rope.factors.empty()) {
    const Config config = with_named_rope(*description.config, conversion.model);
    named_rope = config.rope;
    plan = llama_plan(config);
    result.notes.push_back(
        fmt::format("the factors of RoPE became \"rope_scaling\": llama3, factor {}, {} positions",
                    named_rope->factor, named_rope->original_max_seq_len));
  }
  std::vector<OutputTensor> tensors = output_tensors(plan, checkpoint);
  std::vector<StoredTensor> listed;  // for the header of the file
  std::vector<std::size_t> sizes;
  std::map<DType, std::size_t> n_quantized;
  for (OutputTensor& tensor : tensors) {
    if (is_quantized(tensor.dtype)) {
      if (!conversion.dtype) ++n_quantized[tensor.dtype];
      tensor.dtype = DType::F32;
    }
    if (!tensor.exact) tensor.dtype = conversion.dtype.value_or(tensor.dtype);
    listed.push_back({tensor.name, tensor.dtype, tensor.stored->shape, {}});
    sizes.push_back(bytes_as(*tensor.stored, tensor.dtype));
  }
  for (const auto& [dtype, n] : n_quantized) {
    result.notes.push_back(
        fmt::format("{} became F32: a folder cannot hold {} (--type bf16 halves the size)",
                    counted(n, "matrix", "matrices"), dtype_name(dtype)));
  }
  if (conversion.with_tokenizer && conversion.tokenizer) {
    check_tokenizer(conversion, Tokenizer::open(*conversion.tokenizer).vocab_size(), plan);
  }
  const AtomicFolder folder(conversion.out, conversion.replace);
  folder.write("config.json",
               folder_config(conversion.model, plan, widest_type(tensors), named_rope));
  const fs::path generation = conversion.model.path() / "generation_config.json";
  if (is_there(generation)) {
    folder.write("generation_config.json", read_text_file(generation, kMaxCopiedBytes));
  }
  check_same_plan(folder, plan, conversion.out);
  note_no_end(conversion, plan, result);
  if (conversion.with_tokenizer) copy_or_write_tokenizer(folder, conversion, plan);
  AtomicFile file(folder.file("model.safetensors"), true);
  file.write(safetensors_header(listed, sizes, {{"format", "pt"}}));
  ThreadPool threads(usable_cores());
  for (const OutputTensor& tensor : tensors) {
    write_tensor(tensor, checkpoint, threads, file, conversion.check);
  }
  file.commit();
  folder.commit();
  result.n_tensors = tensors.size();
  result.bytes = file.size();
  return result;
}

}  // namespace stagecraft
