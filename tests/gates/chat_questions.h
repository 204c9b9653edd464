#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tests/gates/questions.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft::stages {

// What both gates of stage 8 ask with.

// The model and tokenizer of most questions. It lies there until the end, for a diagnosis asks the
// questions again.
const TinyChatModel& usual();

// Something to say, another thing each time.
std::string words(Inputs& inputs, std::size_t count);

// A token as a person would write it: <|im_end|>, "he", "\n".
using Spell = std::function<std::string(int)>;
Spell spelling(const std::filesystem::path& folder);

}  // namespace stagecraft::stages
