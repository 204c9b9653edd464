#pragma once

#include <CLI/CLI.hpp>
#include <ctime>
#include <optional>
#include <string>

#include "checkpoint/model_source.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace stagecraft {

// Adds --chat-template-kwargs, as llama.cpp calls it.
void add_template_variables_to(CLI::App& command, std::string& json);

// The chat format of --chat-template and --chat-template-kwargs. now: as in ChatFormat::Options.
ChatFormat open_chat_format(const ModelSource& model, const Tokenizer& tokenizer,
                            const std::string& chat_template, const std::string& variables,
                            std::optional<std::tm> now = {});

}  // namespace stagecraft
