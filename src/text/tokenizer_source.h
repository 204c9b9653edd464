#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace stagecraft {

// For a model whose vocabulary is in no tokenizer.json (GGUF, llama2.c, .flm): the text of the one
// that says the same. nullopt for a folder and for any other file. Throws Error naming the file.
std::optional<std::string> derived_tokenizer_json(const std::filesystem::path& model);

}  // namespace stagecraft
