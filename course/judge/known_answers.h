#pragma once

#include <filesystem>

#include "course/judge/known_worker.h"

namespace stagecraft::stages {

// Asks a program of the catalogue. It is ours and runs without a sandbox (known_worker.h).
Outcome ask_ours(const std::filesystem::path& program, const WrittenRequest& request);

// Asks the program that is judged. A program in the folder STAGE_OURS, which is set when the
// catalogue is tested, runs without a sandbox.
Outcome ask_judged(const Request& request, std::size_t most = kMostAnswerBytes);

// Asks a known mistake, whose answers never change, or the judged program itself. If STAGE_ANSWERS
// names a folder, the answers of mistakes are kept there, for this process and for others; the key
// is a hash of the numbers, the texts and the model files. Whoever sets STAGE_ANSWERS must empty
// the folder when the programs change.
Outcome ask_known(const std::filesystem::path& program, const Request& request);

}  // namespace stagecraft::stages
