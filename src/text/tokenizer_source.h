#pragma once

#include <optional>

#include "base/json.h"
#include "checkpoint/model_source.h"

namespace stagecraft {

// Makes the content of a tokenizer.json for a model file whose vocabulary has another format (GGUF,
// llama2.c, .flm). nullopt for a folder and for any other file. Throws Error naming the file.
std::optional<Json> describe_tokenizer(const ModelSource& model);

// The file from which Tokenizer::open reads the vocabulary, for error messages.
std::filesystem::path vocabulary_path(const ModelSource& model);

// Throws Error if `tokenizer` has more tokens than `model` has rows in its embedding table: it is
// the tokenizer of another model. (Fewer tokens are common.)
void refuse_other_tokenizer(const ModelSource& tokenizer, std::size_t n_tokens,
                            const ModelSource& model, std::size_t n_rows);

// Whether the model has a vocabulary, in its file or beside it. Throws Error if a file cannot be
// read. Does not check the vocabulary: Tokenizer::open does.
bool has_tokenizer(const ModelSource& model);

}  // namespace stagecraft
