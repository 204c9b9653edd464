#include "text/tokenizer_source.h"

#include "checkpoint/flm.h"
#include "checkpoint/gguf.h"
#include "checkpoint/llama2c.h"
#include "text/formats/flm_tokenizer.h"
#include "text/formats/gguf_tokenizer.h"
#include "text/formats/llama2c_tokenizer.h"

namespace stagecraft {

std::optional<std::string> derived_tokenizer_json(const std::filesystem::path& model) {
  if (is_gguf(model)) return gguf_tokenizer_json(GgufFile(model).metadata());
  if (is_llama2c(model)) return llama2c_tokenizer_json_beside(model);
  if (is_flm(model)) return flm_tokenizer_json(FlmFile(model));
  if (model.extension() == ".bin") return llama2c_tokenizer_json(model, std::nullopt);
  return std::nullopt;
}

}  // namespace stagecraft
