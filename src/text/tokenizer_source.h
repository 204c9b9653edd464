#pragma once

#include <optional>

#include "base/json.h"
#include "checkpoint/model_source.h"

namespace stagecraft {

// For a model whose vocabulary is in no tokenizer.json (GGUF, llama2.c, .flm): what a
// tokenizer.json would contain. nullopt for a folder and for any other file. Throws Error naming
// the file.
std::optional<Json> describe_tokenizer(const ModelSource& model);

// The file in which Tokenizer::open finds the vocabulary, for errors.
std::filesystem::path vocabulary_path(const ModelSource& model);

// Whether the model has a vocabulary, in the file or beside it. Throws Error if a file cannot be
// read; a vocabulary that is wrong is found by Tokenizer::open.
bool has_tokenizer(const ModelSource& model);

}  // namespace stagecraft
