#include "text/tokenizer_source.h"

#include "checkpoint/model_file.h"
#include "text/tokenizer.h"

namespace stagecraft {

std::optional<Json> describe_tokenizer(const ModelSource& model) {
  std::error_code ignored;
  if (std::filesystem::is_directory(model.path(), ignored)) return std::nullopt;
  if (const ModelFile* file = model.file()) return file->tokenizer();
  return describe_vocabulary_file(model.path());
}

std::filesystem::path vocabulary_path(const ModelSource& model) {
  if (const ModelFile* file = model.file()) return file->vocabulary_path();
  return tokenizer_file(model.path()).value_or(model.path());
}

void refuse_other_tokenizer(const ModelSource& tokenizer, std::size_t n_tokens,
                            const ModelSource& model, std::size_t n_rows) {
  if (n_tokens <= n_rows) return;
  throw Error("{}: expected ids from 0 to {} (the {} rows of {}), found {}",
              vocabulary_path(tokenizer).string(), n_rows - 1, n_rows, model.name(), n_tokens - 1);
}

bool has_tokenizer(const ModelSource& model) {
  if (const ModelFile* file = model.file()) return file->has_tokenizer();
  return tokenizer_file(model.path()).has_value();
}

}  // namespace stagecraft
