#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tests/gates/questions.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft::stages {

// What both gates of stage 8 use for their questions.

// Writes a TinyChatModel into folder_for_files(name): its files exist as long as the requests that
// refer to them, because a diagnosis, the sanitizers and ./stage debug ask the questions again.
std::filesystem::path chat_model(const std::string& name, const TinyChatModel::Options& = {});

// The model and tokenizer of most questions.
const std::filesystem::path& usual();

// Random words for a message, different each time.
std::string words(Inputs& inputs, std::size_t count);

// A token in readable form: <|im_end|>, "he", "\n".
using Spell = std::function<std::string(int)>;
Spell spelling(const std::filesystem::path& folder);

}  // namespace stagecraft::stages
