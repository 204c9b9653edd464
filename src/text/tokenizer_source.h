#pragma once

#include <optional>

#include "base/json.h"
#include "checkpoint/model_source.h"

namespace stagecraft {

// For a model whose vocabulary is in no tokenizer.json (GGUF, llama2.c, .flm): what one would say.
// nullopt for a folder and for any other file. Throws Error naming the file.
std::optional<Json> describe_tokenizer(const ModelSource& model);

}  // namespace stagecraft
