// Some programs open only plain folders, with safetensors and a tokenizer.json: the program of the
// first story, the gate and nearly all workers. They link this file. The others link the readers of
// other formats.
#include "base/error.h"
#include "checkpoint/composed_weights.h"
#include "checkpoint/model_file.h"
#include "checkpoint/model_source.h"
#include "text/formats/sentencepiece_tokenizer.h"

namespace stagecraft {
namespace {

[[noreturn]] void refuse(const std::string& where, std::string_view what) {
  throw Error("{}: this program does not read {}; ./stage build builds one that does", where, what);
}

}  // namespace

std::span<const ModelFormat> model_formats() { return {}; }

std::optional<Json> describe_vocabulary_file(const std::filesystem::path&) { return std::nullopt; }

Tokenizer::Impl read_sentencepiece(const std::filesystem::path& path) {
  refuse(path.string(), "models of sentencepiece");
}

std::optional<Quantization> parse_quantization(JsonNode config, const std::string& where) {
  if (!config.contains("quantization_config")) return std::nullopt;
  refuse(where, "weights with a 'quantization_config'");
}

// Gets only plain folders: the plan is made before this call, and parse_quantization refuses
// others.
std::shared_ptr<const ComposedWeights> compose_weights(const ModelSource&, TensorMap&,
                                                       const std::string&) {
  return nullptr;
}

}  // namespace stagecraft
