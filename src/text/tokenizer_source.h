#pragma once

#include <optional>
#include <string>

#include "checkpoint/model_source.h"

namespace stagecraft {

// For a model whose vocabulary is in no tokenizer.json (GGUF, llama2.c, .flm): the text of the one
// that says the same. nullopt for a folder and for any other file. Throws Error naming the file.
std::optional<std::string> derived_tokenizer_json(const ModelSource& model);

}  // namespace stagecraft
