#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tests/gates/questions.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft::stages {

// What both gates of stage 8 use for their questions.

// The model and tokenizer of most questions. Its files exist until the end, because a diagnosis
// asks the questions again.
const TinyChatModel& usual();

// Random words for a message, different each time.
std::string words(Inputs& inputs, std::size_t count);

// A token in readable form: <|im_end|>, "he", "\n".
using Spell = std::function<std::string(int)>;
Spell spelling(const std::filesystem::path& folder);

}  // namespace stagecraft::stages
