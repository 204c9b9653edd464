#include "text/tokenizer_source.h"

#include "checkpoint/flm.h"
#include "checkpoint/gguf.h"
#include "checkpoint/llama2c.h"
#include "text/formats/flm_tokenizer.h"
#include "text/formats/gguf_tokenizer.h"
#include "text/formats/llama2c_tokenizer.h"

namespace stagecraft {

std::optional<std::string> derived_tokenizer_json(const ModelSource& model) {
  if (const auto file = model.gguf()) return gguf_tokenizer_json(file->metadata());
  if (const auto header = model.llama2c()) {
    return llama2c_tokenizer_json_beside(model.path(), header->vocab_size);
  }
  if (const auto file = model.flm()) return flm_tokenizer_json(*file);
  if (model.path().extension() == ".bin") {  // llama2.c's vocabulary, without its model
    return llama2c_tokenizer_json(model.path(), std::nullopt);
  }
  return std::nullopt;
}

}  // namespace stagecraft
