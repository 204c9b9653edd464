#include "base/file_kind.h"
#include "checkpoint/model_file.h"
#include "formats/flm/model.h"
#include "formats/gguf/model.h"
#include "formats/llama2c/model.h"
#include "formats/llama2c/tokenizer.h"

namespace stagecraft {
namespace {

template <typename Model>
std::shared_ptr<const ModelFile> open(const std::filesystem::path& path) {
  return std::make_shared<const Model>(path);
}

// A file without the extension of any format is opened to see its first bytes.
constexpr ModelFormat kFormats[] = {
    {".flm", is_flm, open<FlmModel>},
    {".gguf", is_gguf, open<GgufModel>},
    {".bin", is_llama2c, open<Llama2cModel>},
};

}  // namespace

std::span<const ModelFormat> model_formats() { return kFormats; }

std::optional<Json> describe_vocabulary_file(const std::filesystem::path& path) {
  if (!has_extension(path, ".bin")) return std::nullopt;
  return describe_llama2c_tokenizer(path, std::nullopt);
}

}  // namespace stagecraft
