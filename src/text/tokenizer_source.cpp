#include "text/tokenizer_source.h"

#include "checkpoint/flm.h"
#include "checkpoint/gguf.h"
#include "checkpoint/llama2c.h"
#include "text/formats/flm_tokenizer.h"
#include "text/formats/gguf_tokenizer.h"
#include "text/formats/llama2c_tokenizer.h"
#include "text/tokenizer.h"

namespace stagecraft {

std::optional<Json> describe_tokenizer(const ModelSource& model) {
  std::error_code ignored;
  if (std::filesystem::is_directory(model.path(), ignored)) return std::nullopt;
  if (const auto file = model.gguf()) return describe_gguf_tokenizer(file->metadata());
  if (const auto file = model.llama2c()) {
    return describe_llama2c_tokenizer_beside(model.path(), file->header().vocab_size);
  }
  if (const auto file = model.flm()) return describe_flm_tokenizer(*file);
  if (model.path().extension() == ".bin") {  // llama2.c's vocabulary, without its model
    return describe_llama2c_tokenizer(model.path(), std::nullopt);
  }
  return std::nullopt;
}

std::filesystem::path vocabulary_path(const ModelSource& model) {
  if (const auto file = model.llama2c()) {
    return find_llama2c_tokenizer(model.path(), file->header().vocab_size).value_or(model.path());
  }
  return tokenizer_file(model.path()).value_or(model.path());
}

void refuse_other_tokenizer(const ModelSource& tokenizer, std::size_t n_tokens,
                            const ModelSource& model, std::size_t n_rows) {
  if (n_tokens <= n_rows) return;
  throw Error("{}: expected ids from 0 to {} (the {} rows of {}), found {}",
              vocabulary_path(tokenizer).string(), n_rows - 1, n_rows, model.name(), n_tokens - 1);
}

bool has_tokenizer(const ModelSource& model) {
  if (const auto file = model.gguf()) return file->metadata().has("tokenizer.ggml.tokens");
  if (const auto file = model.llama2c()) {
    return find_llama2c_tokenizer(model.path(), file->header().vocab_size).has_value();
  }
  if (const auto file = model.flm()) return !file->vocabulary().empty();
  return tokenizer_file(model.path()).has_value();
}

}  // namespace stagecraft
